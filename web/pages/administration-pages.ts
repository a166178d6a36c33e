// The pages for operators, in one bundle: separate bundles would each load dozens of small shared files.

export { AccountsPage } from "./accounts/accounts-page.tsx";
export { FullAuditPage } from "./audit/full-audit-page.tsx";
export { McpServersPage } from "./mcp-servers/mcp-servers-page.tsx";
export { NodesPage } from "./nodes/nodes-page.tsx";
export { PeoplePage } from "./people/people-page.tsx";
export { SigningKeysPage } from "./signing-keys/signing-keys-page.tsx";
export { SystemPage } from "./system/system-page.tsx";
export { TiersPage } from "./tiers/tiers-page.tsx";
export { UpstreamsPage } from "./upstreams/upstreams-page.tsx";
export { OperatorWebhooksPage } from "./webhooks/operator-webhooks-page.tsx";
