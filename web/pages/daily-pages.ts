// The pages for everyday use, in one bundle: separate bundles would each load dozens of small shared files.

export { AppsPage } from "./apps/apps-page.tsx";
export { BatchesPage } from "./batches/batches-page.tsx";
export { ChatsPage } from "./chats/chats-page.tsx";
export { PlaygroundPage } from "./playground/playground-page.tsx";
export { RequestsPage } from "./requests/requests-page.tsx";
export { StatementPage } from "./statement/statement-page.tsx";
export { ToolsPage } from "./tools/tools-page.tsx";
export { UsagePage } from "./usage/usage-page.tsx";
