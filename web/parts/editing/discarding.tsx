// Asks for confirmation before a dialog with an edited form closes.
import { createContext, type ReactNode, useContext, useEffect, useId, useState } from "react";
import { Confirm } from "./confirm.tsx";

interface Guard {
  /** The ids of the edited forms in the dialog. */
  edited: Set<string>;
  /** Calls `close` immediately, or after a confirmation if a form was edited. */
  leave(close: () => void): void;
}

interface Question {
  isOpen: boolean;
  /** True if the user chose to discard: the focus then does not return to the form. */
  isLeaving: boolean;
  close(): void;
}

const GuardContext = createContext<Guard | undefined>(undefined);

/** Returns `leave`, which the dialog calls to close, and `guarded`, which wraps the dialog's content. */
export function useDiscarding() {
  const [edited] = useState(() => new Set<string>());
  const [question, setQuestion] = useState<Question>();
  const leave = (close: () => void) => {
    if (edited.size === 0) close();
    else setQuestion({ isOpen: true, isLeaving: false, close });
  };
  const answer = (isLeaving: boolean) => {
    if (!question?.isOpen) return;
    setQuestion({ ...question, isOpen: false, isLeaving });
    if (isLeaving) question.close();
  };
  const guarded = (content: ReactNode) => (
    <GuardContext value={{ edited, leave }}>
      {content}
      <Confirm
        opened={question?.isOpen ?? false}
        title="Discard your changes?"
        action="Discard"
        stay="Keep editing"
        busy={false}
        error={null}
        returnFocus={!question?.isLeaving}
        confirm={() => answer(true)}
        close={() => answer(false)}
      >
        The form has not been sent. Everything that you entered in it will be lost.
      </Confirm>
    </GuardContext>
  );
  return { leave, guarded };
}

/** Registers a form with the dialog around it, if any. Returns the dialog's `leave`. */
export function useEdited(isEdited: boolean): Guard["leave"] {
  const guard = useContext(GuardContext);
  const edited = guard?.edited;
  const id = useId();
  useEffect(() => {
    if (!edited || !isEdited) return;
    edited.add(id);
    return () => void edited.delete(id);
  }, [edited, id, isEdited]);
  return guard?.leave ?? ((close) => close());
}
