// All HTML pages for signing in, for joining, and for a person's own settings.
import type { PageRoute } from "../exchange/route.ts";
import { assetRoutes } from "./assets.ts";
import { type InvitationPageDeps, invitationRoutes } from "./invitation-pages.ts";
import { type ResetPageDeps, resetRoutes } from "./reset-pages.ts";
import { type SettingsPageDeps, settingsRoutes } from "./settings-pages.ts";
import { type SetupPageDeps, setupRoutes } from "./setup-pages.ts";
import { type SignInPageDeps, signInRoutes } from "./sign-in-pages.ts";

export type PageRouteDeps = SignInPageDeps & SetupPageDeps & InvitationPageDeps & ResetPageDeps & SettingsPageDeps;

export function pageRoutes(deps: PageRouteDeps): PageRoute[] {
  return [
    ...signInRoutes(deps),
    ...setupRoutes(deps),
    ...invitationRoutes(deps),
    ...resetRoutes(deps),
    ...settingsRoutes(deps),
    ...assetRoutes(),
  ];
}
