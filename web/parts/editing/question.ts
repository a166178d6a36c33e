// A change with a confirmation dialog: its subject, and the dialog's properties.
import { useState } from "react";
import { type NotifiedChangeOptions, useNotifiedChange } from "./notified-change.ts";

/**
 * `ask` opens the confirmation dialog, which the page renders as `<Confirm {...dialog} …>`. `about` is the subject of
 * the last question, and stays set while the dialog closes.
 */
export function useQuestion<About = void, Answer = unknown>(
  change: (about: About) => Promise<Answer>,
  { done, ...options }: NotifiedChangeOptions<About, Answer>,
) {
  const [asked, setAsked] = useState<{ about: About; isOpen: boolean }>();
  const close = () => setAsked((now) => now && { ...now, isOpen: false });
  const { mutate, isPending, error, reset } = useNotifiedChange(change, {
    ...options,
    done(answer, about) {
      close();
      done?.(answer, about);
    },
  });
  const opened = asked?.isOpen ?? false;
  return {
    about: asked?.about,
    /** Forgets the answer, such as a secret. */
    forget: reset,
    /** Sends the change without a confirmation. */
    change: mutate,
    ask(about: About) {
      reset();
      setAsked({ about, isOpen: true });
    },
    dialog: {
      opened,
      busy: isPending,
      error,
      confirm() {
        if (asked?.isOpen) mutate(asked.about);
      },
      close,
    },
  };
}
