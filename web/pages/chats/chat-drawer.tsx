// One stored chat in full: beside the list on a wide screen, in its place on a narrow one.
import { useSession } from "../../api/session.tsx";
import type { StoredChatCompletion } from "../../api/types.ts";
import { Empty } from "../../parts/page/empty.tsx";
import { RecordDrawer } from "../../parts/page/record-drawer.tsx";
import { environmentNames } from "../../parts/words/environments.ts";
import { ChatView } from "./chat-view.tsx";

/** `id`: null where none is open. */
export function ChatDrawer({ id }: { id: string | null }) {
  const { environment } = useSession();
  return (
    <RecordDrawer<StoredChatCompletion>
      id={id}
      title="Stored chat"
      width="48rem"
      list="/chats"
      path="/v1/chat/completions"
      what="the chat"
      missing={() => (
        <Empty title="There is no such chat here">
          It may have expired or been deleted, be of another environment than {environmentNames[environment]}, or be
          somebody else's.
        </Empty>
      )}
    >
      {(chat, close) => <ChatView chat={chat} close={close} />}
    </RecordDrawer>
  );
}
