// The pages there are: where each is, who sees it, and the file that is loaded when it is opened.
import {
  AppsIcon,
  BeakerIcon,
  CommentDiscussionIcon,
  CpuIcon,
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
import { type ComponentType, type LazyExoticComponent, lazy } from "react";

export interface Place {
  /** What is behind it in the path belongs to the same page. */
  path: string;
  title: string;
  icon: Icon;
  page: LazyExoticComponent<ComponentType>;
  /** Who finds it in the menu; the server decides who may. */
  who?: "manager" | "operator";
  /** It shows one of its list beside the list, which stays as it was scrolled and filtered. */
  keepsList?: boolean;
}

export interface Section {
  title: string | null;
  places: readonly Place[];
}

const page = (load: () => Promise<ComponentType>) => lazy(async () => ({ default: await load() }));

export const sections: readonly Section[] = [
  {
    title: null,
    places: [
      {
        path: "/",
        title: "Overview",
        icon: HomeIcon,
        page: page(async () => (await import("../pages/overview/overview-page.tsx")).OverviewPage),
      },
      {
        path: "/playground",
        title: "Playground",
        icon: BeakerIcon,
        page: page(async () => (await import("../pages/playground/playground-page.tsx")).PlaygroundPage),
      },
      {
        path: "/catalog",
        title: "Models",
        icon: CpuIcon,
        page: page(async () => (await import("../pages/models/models-page.tsx")).ModelsPage),
      },
      {
        path: "/usage",
        title: "Usage",
        icon: GraphIcon,
        page: page(async () => (await import("../pages/usage/usage-page.tsx")).UsagePage),
      },
      {
        path: "/requests",
        title: "Logs",
        keepsList: true,
        icon: LogIcon,
        page: page(async () => (await import("../pages/requests/requests-page.tsx")).RequestsPage),
      },
      {
        path: "/chats",
        title: "Chats",
        keepsList: true,
        icon: CommentDiscussionIcon,
        page: page(async () => (await import("../pages/chats/chats-page.tsx")).ChatsPage),
      },
      {
        path: "/apps",
        title: "Apps",
        icon: AppsIcon,
        page: page(async () => (await import("../pages/apps/apps-page.tsx")).AppsPage),
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
        page: page(async () => (await import("../pages/keys/keys-page.tsx")).KeysPage),
      },
      {
        path: "/settings/limits",
        title: "Limits",
        icon: MeterIcon,
        page: page(async () => (await import("../pages/limits/limits-page.tsx")).LimitsPage),
      },
      {
        path: "/settings/members",
        title: "Members",
        icon: PeopleIcon,
        page: page(async () => (await import("../pages/members/members-page.tsx")).MembersPage),
      },
      {
        path: "/settings/security",
        title: "Profile and sign-in",
        icon: ShieldLockIcon,
        page: page(async () => (await import("../pages/security/security-page.tsx")).SecurityPage),
      },
      {
        path: "/settings/audit-log",
        title: "Audit log",
        icon: HistoryIcon,
        who: "manager",
        page: page(async () => (await import("../pages/audit/account-audit-page.tsx")).AccountAuditPage),
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
        page: page(async () => (await import("../pages/upstreams/upstreams-page.tsx")).UpstreamsPage),
      },
      {
        path: "/admin/accounts",
        title: "Accounts",
        icon: OrganizationIcon,
        who: "operator",
        page: page(async () => (await import("../pages/accounts/accounts-page.tsx")).AccountsPage),
      },
      {
        path: "/admin/people",
        title: "People",
        icon: PeopleIcon,
        who: "operator",
        page: page(async () => (await import("../pages/people/people-page.tsx")).PeoplePage),
      },
      {
        path: "/admin/tiers",
        title: "Tiers",
        icon: StackIcon,
        who: "operator",
        page: page(async () => (await import("../pages/tiers/tiers-page.tsx")).TiersPage),
      },
      {
        path: "/admin/signing-keys",
        title: "Signing keys",
        icon: VerifiedIcon,
        who: "operator",
        page: page(async () => (await import("../pages/signing-keys/signing-keys-page.tsx")).SigningKeysPage),
      },
      {
        path: "/admin/audit-log",
        title: "Audit of all",
        icon: HistoryIcon,
        who: "operator",
        page: page(async () => (await import("../pages/audit/full-audit-page.tsx")).FullAuditPage),
      },
      {
        path: "/admin/system",
        title: "System",
        icon: PulseIcon,
        who: "operator",
        page: page(async () => (await import("../pages/system/system-page.tsx")).SystemPage),
      },
    ],
  },
];
