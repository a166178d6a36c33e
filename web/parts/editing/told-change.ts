// A change of the server whose success is told in a corner of the page.
import { notifications } from "@mantine/notifications";
import { type ChangeOptions, useChange } from "../../api/queries.ts";

export interface NotifiedChangeOptions<Given, Answer> extends ChangeOptions<Given, Answer> {
  /** A whole sentence for who asked for the change; left out where what follows tells enough. */
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
