// The page Chats.
import { Page } from "../../parts/page.tsx";

export function ChatsPage() {
  return <Page title="Chats">{null}</Page>;
}
