// Selects a part of a conversation's state; the component renders only when that part changes.
import { useSyncExternalStore } from "react";
import type { Conversation } from "./conversation.ts";
import type { ConversationState } from "./exchange.ts";

/** `select` must return an identical value as long as nothing has changed. */
export function useConversation<Value>(conversation: Conversation, select: (state: ConversationState) => Value): Value {
  return useSyncExternalStore(conversation.subscribe, () => select(conversation.state()));
}
