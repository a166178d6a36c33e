// A change that is made once somebody has said yes to it: what is asked about, and what its dialog has to know.
import { useState } from "react";
import { type NotifiedChangeOptions, useNotifiedChange } from "./told-change.ts";

/**
 * `ask` opens the question, whose dialog is `<Confirm {...dialog} …>`. `about` is what was asked about last, also while the
 * dialog closes.
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
    /** Forgets what was answered, such as a secret. */
    forget: reset,
    /** Changes it without a question. */
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
