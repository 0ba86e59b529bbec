// Below the list: agents, appearance, account, and documentation.
import { session } from "@/api/session";
import { useStore } from "@/api/store";
import { formatRoute, useRoute } from "@/app/route";
import { chooseTheme, useTheme, type Theme } from "@/app/theme";
import { personOf } from "@/signin/person";
import { useSettings } from "@/signin/settings";
import { signOut } from "@/signin/signOut";
import { IconButton } from "@/ui/Button";
import { Icon } from "@/ui/icons";
import { AcceptInvitation } from "./AcceptInvitation";
import styles from "./SidebarFooter.module.css";

const themes: Record<Theme, string> = { system: "Auto", light: "Light", dark: "Dark" };

function ThemePicker() {
    const theme = useTheme();
    return (
        <fieldset className={styles.theme}>
            <legend className="visually-hidden">Appearance</legend>
            {(Object.keys(themes) as Theme[]).map((one) => (
                <label key={one}>
                    <input
                        type="radio"
                        name="theme"
                        checked={theme === one}
                        onChange={() => chooseTheme(one)}
                    />
                    <span>{themes[one]}</span>
                </label>
            ))}
        </fieldset>
    );
}

function Person({ token }: { token: string }) {
    const { name, detail } = personOf(token);
    return (
        <div className={styles.person}>
            <span className={styles.face} aria-hidden="true">
                {name.slice(0, 1).toUpperCase()}
            </span>
            <span className={styles.name} title={detail}>
                <span className="visually-hidden">Signed in as </span>
                {name}
            </span>
            <IconButton
                icon="out"
                label="Sign out"
                tip="right"
                className={styles.out}
                onClick={() => void signOut()}
            />
        </div>
    );
}

export function SidebarFooter() {
    const { token } = useStore(session);
    const { settings } = useSettings();
    const route = useRoute();
    return (
        <div className={styles.foot}>
            <a
                className={styles.link}
                href={formatRoute({ view: "agents", assistantId: null })}
                aria-current={route.view === "agents" ? "page" : undefined}
            >
                <Icon name="agents" size={16} /> Agents
            </a>
            {token && (
                <a
                    className={styles.link}
                    href={formatRoute({ view: "mentions" })}
                    aria-current={route.view === "mentions" ? "page" : undefined}
                >
                    <Icon name="at" size={16} /> Mentions
                </a>
            )}
            <AcceptInvitation />
            {token && <Person token={token} />}
            <div className={styles.row}>
                <ThemePicker />
                <span className={styles.about}>
                    <a href="./docs" target="_blank" rel="noreferrer">
                        API
                    </a>
                    {settings && <span title="Version of the server">{settings.version}</span>}
                </span>
            </div>
        </div>
    );
}
