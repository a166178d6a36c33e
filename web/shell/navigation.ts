// The pages: the path of each, who sees it, and the file that is loaded when it is opened.
import {
  AppsIcon,
  BeakerIcon,
  CommentDiscussionIcon,
  CpuIcon,
  CreditCardIcon,
  DeviceDesktopIcon,
  FileBinaryIcon,
  GraphIcon,
  HistoryIcon,
  HomeIcon,
  type Icon,
  KeyIcon,
  LogIcon,
  MeterIcon,
  OrganizationIcon,
  PeopleIcon,
  PlugIcon,
  PulseIcon,
  ServerIcon,
  ShieldLockIcon,
  StackIcon,
  TagIcon,
  TasklistIcon,
  ToolsIcon,
  VerifiedIcon,
  WebhookIcon,
} from "@primer/octicons-react";
import type { ComponentType } from "react";
import type { LoadPage } from "./later-page.tsx";

export interface PageEntry {
  /** Longer paths below this path belong to the same page. */
  path: string;
  title: string;
  icon: Icon;
  /** Loads the page's file. */
  load: LoadPage;
  /** The users who see the page in the menu, by default everybody. The server enforces access. */
  who?: "manager";
  /** True if the page shows a record beside its list, which keeps its scroll position and filters. */
  keepsList?: boolean;
}

export interface Section {
  title: string | null;
  /** The users who see the section in the menu, by default everybody. */
  who?: "operator";
  pages: readonly PageEntry[];
}

const overview = pagesOf(() => import("../pages/overview/overview-page.tsx"));
const daily = pagesOf(() => import("../pages/daily-pages.ts"));
const models = pagesOf(() => import("../pages/models-pages.ts"));
const settings = pagesOf(() => import("../pages/settings-pages.ts"));
const administration = pagesOf(() => import("../pages/administration-pages.ts"));

/** Returns the loader of each page in a bundled file, by the page's export name. */
function pagesOf<Pages extends Record<string, ComponentType>>(file: () => Promise<Pages>) {
  return (name: keyof Pages): LoadPage =>
    async () =>
      (await file())[name] as ComponentType;
}

/** Reports whether an address belongs to a page or to a record that it shows. */
export function isAt({ path }: Pick<PageEntry, "path">, location: string): boolean {
  return path === "/" ? location === "/" : location === path || location.startsWith(`${path}/`);
}

export const sections: readonly Section[] = [
  {
    title: null,
    pages: [
      { path: "/", title: "Overview", icon: HomeIcon, load: overview("OverviewPage") },
      { path: "/playground", title: "Playground", icon: BeakerIcon, load: daily("PlaygroundPage") },
      { path: "/catalog", title: "Models", icon: CpuIcon, load: models("ModelsPage") },
      { path: "/prices", title: "Prices", icon: TagIcon, load: models("PricesPage") },
      { path: "/tools", title: "Tools", icon: ToolsIcon, load: daily("ToolsPage") },
      { path: "/usage", title: "Usage", icon: GraphIcon, load: daily("UsagePage") },
      { path: "/statements", title: "Statements", icon: CreditCardIcon, load: daily("StatementPage") },
      { path: "/requests", title: "Logs", icon: LogIcon, keepsList: true, load: daily("RequestsPage") },
      { path: "/chats", title: "Chats", icon: CommentDiscussionIcon, keepsList: true, load: daily("ChatsPage") },
      { path: "/batches", title: "Batches", icon: TasklistIcon, keepsList: true, load: daily("BatchesPage") },
      { path: "/apps", title: "Apps", icon: AppsIcon, load: daily("AppsPage") },
    ],
  },
  {
    title: "Settings",
    pages: [
      { path: "/settings/api-keys", title: "API Keys", icon: KeyIcon, load: settings("KeysPage") },
      { path: "/settings/limits", title: "Limits", icon: MeterIcon, load: settings("LimitsPage") },
      { path: "/settings/members", title: "Members", icon: PeopleIcon, load: settings("MembersPage") },
      {
        path: "/settings/security",
        title: "Profile and sign-in",
        icon: ShieldLockIcon,
        load: settings("SecurityPage"),
      },
      {
        path: "/settings/webhooks",
        title: "Webhooks",
        icon: WebhookIcon,
        who: "manager",
        load: settings("WebhooksPage"),
      },
      {
        path: "/settings/audit-log",
        title: "Audit log",
        icon: HistoryIcon,
        who: "manager",
        load: settings("AccountAuditPage"),
      },
    ],
  },
  {
    title: "Administration",
    who: "operator",
    pages: [
      { path: "/admin/upstreams", title: "Upstreams", icon: ServerIcon, load: administration("UpstreamsPage") },
      { path: "/admin/model-files", title: "Model files", icon: FileBinaryIcon, load: models("ModelFilesPage") },
      { path: "/admin/tool-servers", title: "MCP servers", icon: PlugIcon, load: administration("McpServersPage") },
      { path: "/admin/nodes", title: "Nodes", icon: DeviceDesktopIcon, load: administration("NodesPage") },
      { path: "/admin/accounts", title: "Accounts", icon: OrganizationIcon, load: administration("AccountsPage") },
      { path: "/admin/people", title: "People", icon: PeopleIcon, load: administration("PeoplePage") },
      { path: "/admin/tiers", title: "Tiers", icon: StackIcon, load: administration("TiersPage") },
      {
        path: "/admin/signing-keys",
        title: "Signing keys",
        icon: VerifiedIcon,
        load: administration("SigningKeysPage"),
      },
      {
        path: "/admin/webhooks",
        title: "Server webhooks",
        icon: WebhookIcon,
        load: administration("OperatorWebhooksPage"),
      },
      { path: "/admin/audit-log", title: "Server audit log", icon: HistoryIcon, load: administration("FullAuditPage") },
      { path: "/admin/system", title: "System", icon: PulseIcon, load: administration("SystemPage") },
    ],
  },
];
