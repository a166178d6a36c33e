// The settings pages, bundled together: a chunk per page would share dozens of small chunks.

export { AccountAuditPage } from "./audit/account-audit-page.tsx";
export { KeysPage } from "./keys/keys-page.tsx";
export { LimitsPage } from "./limits/limits-page.tsx";
export { MembersPage } from "./members/members-page.tsx";
export { SecurityPage } from "./security/security-page.tsx";
export { WebhooksPage } from "./webhooks/webhooks-page.tsx";
