import type { ButtonHTMLAttributes, Ref } from "react";
import styles from "./Button.module.css";
import { Icon, type IconName } from "./icons";

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
    kind?: "plain" | "primary" | "danger" | "quiet";
    icon?: IconName;
    ref?: Ref<HTMLButtonElement>;
}

export function Button({ kind = "plain", icon, className = "", children, ...rest }: ButtonProps) {
    return (
        <button type="button" className={`${styles.button} ${styles[kind]} ${className}`} {...rest}>
            {icon && <Icon name={icon} size={16} />}
            {children}
        </button>
    );
}

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
    icon: IconName;
    /** The accessible name, and the text of the tooltip. */
    label: string;
    kind?: "quiet" | "primary";
    /** The alignment of the tooltip, so that it stays in the window. */
    tip?: "middle" | "left" | "right";
    ref?: Ref<HTMLButtonElement>;
}

export function IconButton({
    icon,
    label,
    kind = "quiet",
    tip = "middle",
    className = "",
    ...rest
}: IconButtonProps) {
    return (
        <button
            type="button"
            aria-label={label}
            className={`${styles.icon} ${styles[kind]} ${className}`}
            {...rest}
        >
            <Icon name={icon} />
            <span className={`${styles.tip} ${styles[tip]}`} aria-hidden="true">
                {label}
            </span>
        </button>
    );
}
