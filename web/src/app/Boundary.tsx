// What is shown instead of a part of the page that can't be: the rest stays as it is.
import { Component, type ReactNode } from "react";
import { Button } from "@/ui/Button";
import { Icon } from "@/ui/icons";
import styles from "./Boundary.module.css";

export class Boundary extends Component<{ children: ReactNode }, { isBroken: boolean }> {
    override state = { isBroken: false };

    static getDerivedStateFromError() {
        return { isBroken: true };
    }

    override render() {
        if (!this.state.isBroken) return this.props.children;
        return (
            <div className={styles.broken} role="alert">
                <Icon name="warning" size={28} />
                <h2>This can't be shown</h2>
                <p>
                    Something went wrong, or the server has a newer page by now. What was said is
                    kept.
                </p>
                <Button icon="retry" onClick={() => window.location.reload()}>
                    Reload the page
                </Button>
            </div>
        );
    }
}
