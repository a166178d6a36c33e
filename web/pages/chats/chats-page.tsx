// The page Chats: the list of stored chats, and one chat beside the list.
import { useRoute } from "wouter";
import { useSession } from "../../api/session.tsx";
import type { StoredChatCompletion } from "../../api/types.ts";
import { Empty } from "../../parts/page/empty.tsx";
import { RecordDrawer } from "../../parts/page/record-drawer.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { ChatList } from "./chat-list.tsx";
import { ChatView } from "./chat-view.tsx";

export function ChatsPage() {
  const { environment } = useSession();
  const [isOne, parameters] = useRoute("/chats/:id");
  return (
    <>
      <ChatList />
      <RecordDrawer<StoredChatCompletion>
        id={isOne ? parameters.id : null}
        title="Stored chat"
        width="48rem"
        list="/chats"
        path="/v1/chat/completions"
        what="the chat"
        missing={() => (
          <Empty title="Chat not found">
            The chat may have expired or been deleted, or belong to another environment than{" "}
            {environmentNames[environment]}, or to another person.
          </Empty>
        )}
      >
        {(chat, close) => <ChatView chat={chat} close={close} />}
      </RecordDrawer>
    </>
  );
}
