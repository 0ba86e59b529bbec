// What is shown instead of a part of the page that can't be: the rest stays as it is.
import { Component, type ReactNode } from "react";
import { Button } from "@/ui/Button";
import { ErrorState } from "@/ui/ErrorState";

export class Boundary extends Component<{ children: ReactNode }, { isBroken: boolean }> {
    override state = { isBroken: false };

    static getDerivedStateFromError() {
        return { isBroken: true };
    }

    override render() {
        if (!this.state.isBroken) return this.props.children;
        return (
            <ErrorState
                icon="warning"
                title="This can't be shown"
                text="Something went wrong, or the server has a newer page by now. What was said is kept."
            >
                <Button icon="retry" onClick={() => window.location.reload()}>
                    Reload the page
                </Button>
            </ErrorState>
        );
    }
}
