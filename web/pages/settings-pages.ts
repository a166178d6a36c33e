// The settings pages, in one bundle: separate bundles would each load dozens of small shared files.

export { AccountAuditPage } from "./audit/account-audit-page.tsx";
export { KeysPage } from "./keys/keys-page.tsx";
export { LimitsPage } from "./limits/limits-page.tsx";
export { MembersPage } from "./members/members-page.tsx";
export { SecurityPage } from "./security/security-page.tsx";
export { WebhooksPage } from "./webhooks/webhooks-page.tsx";
