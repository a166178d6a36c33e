// Selects a part of a conversation's state; the component renders only when that part changes.
import { useCallback, useSyncExternalStore } from "react";
import type { Conversation } from "./conversation.ts";
import type { ConversationState } from "./exchange.ts";

/** `select` must return an identical value as long as nothing has changed. */
export function useConversation<Value>(conversation: Conversation, select: (state: ConversationState) => Value): Value {
  return useSyncExternalStore(conversation.subscribe, () => select(conversation.state()));
}

/** Reports whether one of the conversations waits for an answer. */
export function useIsRunning(conversations: readonly Conversation[]): boolean {
  const subscribe = useCallback(
    (listener: () => void) => {
      const ends = conversations.map((conversation) => conversation.subscribe(listener));
      return () => {
        for (const end of ends) end();
      };
    },
    [conversations],
  );
  return useSyncExternalStore(subscribe, () => conversations.some((conversation) => conversation.state().running));
}
