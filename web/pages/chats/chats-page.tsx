// The page Chats: what was stored of chats, and one of them beside the list.
import { useRoute } from "wouter";
import { ChatDrawer } from "./chat-drawer.tsx";
import { ChatList } from "./chat-list.tsx";

export function ChatsPage() {
  const [isOne, parameters] = useRoute("/chats/:id");
  return (
    <>
      <ChatList />
      <ChatDrawer id={isOne ? parameters.id : null} />
    </>
  );
}
