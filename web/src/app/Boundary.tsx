// Shown instead of a part of the page that failed; the rest stays usable.
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
                title="This part of the page failed to load"
                text="Something went wrong, or the server was upgraded. Your conversation is stored."
            >
                <Button icon="retry" onClick={() => window.location.reload()}>
                    Reload the page
                </Button>
            </ErrorState>
        );
    }
}
