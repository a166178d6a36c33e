// The pages there are: where each is, who sees it, and the file that is loaded when it is opened.
import {
  AppsIcon,
  BeakerIcon,
  CommentDiscussionIcon,
  CpuIcon,
  DeviceDesktopIcon,
  GraphIcon,
  HistoryIcon,
  HomeIcon,
  type Icon,
  KeyIcon,
  LogIcon,
  MeterIcon,
  OrganizationIcon,
  PeopleIcon,
  PulseIcon,
  ServerIcon,
  ShieldLockIcon,
  StackIcon,
  VerifiedIcon,
} from "@primer/octicons-react";
import type { ComponentType } from "react";
import type { LoadPage } from "./later-page.tsx";

export interface Place {
  /** What is behind it in the path belongs to the same page. */
  path: string;
  title: string;
  icon: Icon;
  /** How its file is loaded. */
  load: LoadPage;
  /** Who finds it in the menu; the server decides who may. */
  who?: "manager" | "operator";
  /** It shows one of its list beside the list, which stays as it was scrolled and filtered. */
  keepsList?: boolean;
}

export interface Section {
  title: string | null;
  places: readonly Place[];
}

const overview = () => import("../pages/overview/overview-page.tsx");
const daily = () => import("../pages/daily-pages.ts");
const models = () => import("../pages/models/models-page.tsx");
const settings = () => import("../pages/settings-pages.ts");
const administration = () => import("../pages/administration-pages.ts");

/** A page of one of these files. */
function later<Pages>(file: () => Promise<Pages>, choose: (pages: Pages) => ComponentType): Pick<Place, "load"> {
  return { load: async () => choose(await file()) };
}

/** Whether an address is that of a place, or of something that it shows. */
export function isAt({ path }: Pick<Place, "path">, location: string): boolean {
  return path === "/" ? location === "/" : location === path || location.startsWith(`${path}/`);
}

export const sections: readonly Section[] = [
  {
    title: null,
    places: [
      {
        path: "/",
        title: "Overview",
        icon: HomeIcon,
        ...later(overview, (pages) => pages.OverviewPage),
      },
      {
        path: "/playground",
        title: "Playground",
        icon: BeakerIcon,
        ...later(daily, (pages) => pages.PlaygroundPage),
      },
      {
        path: "/catalog",
        title: "Models",
        icon: CpuIcon,
        ...later(models, (pages) => pages.ModelsPage),
      },
      {
        path: "/usage",
        title: "Usage",
        icon: GraphIcon,
        ...later(daily, (pages) => pages.UsagePage),
      },
      {
        path: "/requests",
        title: "Logs",
        keepsList: true,
        icon: LogIcon,
        ...later(daily, (pages) => pages.RequestsPage),
      },
      {
        path: "/chats",
        title: "Chats",
        keepsList: true,
        icon: CommentDiscussionIcon,
        ...later(daily, (pages) => pages.ChatsPage),
      },
      {
        path: "/apps",
        title: "Apps",
        icon: AppsIcon,
        ...later(daily, (pages) => pages.AppsPage),
      },
    ],
  },
  {
    title: "Settings",
    places: [
      {
        path: "/settings/api-keys",
        title: "API Keys",
        icon: KeyIcon,
        ...later(settings, (pages) => pages.KeysPage),
      },
      {
        path: "/settings/limits",
        title: "Limits",
        icon: MeterIcon,
        ...later(settings, (pages) => pages.LimitsPage),
      },
      {
        path: "/settings/members",
        title: "Members",
        icon: PeopleIcon,
        ...later(settings, (pages) => pages.MembersPage),
      },
      {
        path: "/settings/security",
        title: "Profile and sign-in",
        icon: ShieldLockIcon,
        ...later(settings, (pages) => pages.SecurityPage),
      },
      {
        path: "/settings/audit-log",
        title: "Audit log",
        icon: HistoryIcon,
        who: "manager",
        ...later(settings, (pages) => pages.AccountAuditPage),
      },
    ],
  },
  {
    title: "Administration",
    places: [
      {
        path: "/admin/upstreams",
        title: "Upstreams",
        icon: ServerIcon,
        who: "operator",
        ...later(administration, (pages) => pages.UpstreamsPage),
      },
      {
        path: "/admin/nodes",
        title: "Nodes",
        icon: DeviceDesktopIcon,
        who: "operator",
        ...later(administration, (pages) => pages.NodesPage),
      },
      {
        path: "/admin/accounts",
        title: "Accounts",
        icon: OrganizationIcon,
        who: "operator",
        ...later(administration, (pages) => pages.AccountsPage),
      },
      {
        path: "/admin/people",
        title: "People",
        icon: PeopleIcon,
        who: "operator",
        ...later(administration, (pages) => pages.PeoplePage),
      },
      {
        path: "/admin/tiers",
        title: "Tiers",
        icon: StackIcon,
        who: "operator",
        ...later(administration, (pages) => pages.TiersPage),
      },
      {
        path: "/admin/signing-keys",
        title: "Signing keys",
        icon: VerifiedIcon,
        who: "operator",
        ...later(administration, (pages) => pages.SigningKeysPage),
      },
      {
        path: "/admin/audit-log",
        title: "Server audit log",
        icon: HistoryIcon,
        who: "operator",
        ...later(administration, (pages) => pages.FullAuditPage),
      },
      {
        path: "/admin/system",
        title: "System",
        icon: PulseIcon,
        who: "operator",
        ...later(administration, (pages) => pages.SystemPage),
      },
    ],
  },
];
