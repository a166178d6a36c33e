// A part of a conversation's state, for a component that is drawn anew when that part changes and no other.
import { useSyncExternalStore } from "react";
import type { Conversation } from "./conversation.ts";
import type { ConversationState } from "./exchange.ts";

/** `select`: something that is the same as long as it has not changed. */
export function useConversation<Value>(conversation: Conversation, select: (state: ConversationState) => Value): Value {
  return useSyncExternalStore(conversation.subscribe, () => select(conversation.state()));
}
