// A change whose success is shown as a notification.
import { notifications } from "@mantine/notifications";
import { type ChangeOptions, useChange } from "../../api/queries.ts";

export interface NotifiedChangeOptions<Given, Answer> extends ChangeOptions<Given, Answer> {
  /** Returns the notification, a full sentence; absent if the page itself shows the success. */
  said?(answer: Answer, given: Given): string;
}

export function useNotifiedChange<Given, Answer = unknown>(
  change: (given: Given) => Promise<Answer>,
  { said, done, ...options }: NotifiedChangeOptions<Given, Answer>,
) {
  return useChange(change, {
    ...options,
    done(answer, given) {
      if (said) notifications.show({ message: said(answer, given) });
      done?.(answer, given);
    },
  });
}
