// A form as dialogs and drawers have it: fields, what the server refused that is about none of them, and the buttons.
import { Button, Group, Stack } from "@mantine/core";
import { type ReactNode, type Ref, useState } from "react";
import type { ApiFailure } from "../../api/client.ts";
import { PlainButton } from "../page/buttons.tsx";
import { Failure } from "../page/failure.tsx";
import { useEdited } from "./discarding.tsx";
import { problemBeside } from "./field-problem.ts";

interface FormProps {
  ref?: Ref<HTMLFormElement>;
  /** The change that the form asks for. */
  sending: { isPending: boolean; error: ApiFailure | null };
  /** Fields that show what the server said of them, as the API names them. */
  fields?: readonly string[];
  /** The title of what is shown beside the fields. */
  failed?: string;
  children: ReactNode;
  /** The text of the button that sends it. */
  action: string;
  disabled?: boolean;
  submit(): void;
  /** Left out where there is nothing to go back to. */
  cancel?: () => void;
  /** Nobody leaves while it is sent: what is made would be lost. */
  isHeld?: boolean;
  gap?: "lg";
  noValidate?: boolean;
  /** The form's draft differs from what it began with. */
  isEdited?: boolean;
}

export function Form(props: FormProps) {
  const { ref, sending, fields = [], failed, children, action, disabled = false, submit, cancel } = props;
  const { isHeld = false, gap = "md", noValidate = false, isEdited = false } = props;
  // A draft does not know of text that is typed and not added yet, nor of what a form keeps beside its draft.
  const [isTouched, setTouched] = useState(false);
  // Without a way back there is nothing to discard.
  const leave = useEdited(cancel !== undefined && (isEdited || isTouched));
  const problem = problemBeside(sending.error, fields);
  return (
    <form
      ref={ref}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onChange={() => setTouched(true)}
      noValidate={noValidate}
    >
      <Stack gap={gap}>
        {children}
        {problem && <Failure error={problem} {...(failed === undefined ? {} : { title: failed })} />}
        <Group justify="end" className="form-actions">
          {cancel && (
            <PlainButton onClick={() => leave(cancel)} disabled={isHeld && sending.isPending}>
              Cancel
            </PlainButton>
          )}
          <Button type="submit" loading={sending.isPending} disabled={disabled}>
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
