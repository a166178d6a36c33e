// A form of a dialog or drawer: the fields, the server's errors that concern none of these fields, and the buttons.
import { Button, Group, Stack } from "@mantine/core";
import { type ReactNode, type Ref, useState } from "react";
import type { ApiFailure } from "../../api/client.ts";
import { PlainButton } from "../page/buttons.tsx";
import { Failure } from "../page/failure.tsx";
import { useEdited } from "./discarding.tsx";
import { problemBeside } from "./field-problem.ts";

interface FormProps {
  ref?: Ref<HTMLFormElement>;
  /** The change that the form sends. */
  sending: { isPending: boolean; error: ApiFailure | null };
  /** The API names of fields that show their own errors. */
  fields?: readonly string[];
  /** The title of an error about no field. */
  failed?: string;
  children: ReactNode;
  /** The text of the submit button. */
  action: string;
  disabled?: boolean;
  submit(): void;
  /** Leaves the form; absent if there is nothing to return to. */
  cancel?: () => void;
  /** If true, the dialog cannot be left while sending, because the created secret would be lost. */
  isHeld?: boolean;
  gap?: "lg";
  noValidate?: boolean;
  /** True if the form's draft differs from its initial state. */
  isEdited?: boolean;
}

export function Form(props: FormProps) {
  const { ref, sending, fields = [], failed, children, action, disabled = false, submit, cancel } = props;
  const { isHeld = false, gap = "md", noValidate = false, isEdited = false } = props;
  // Covers text that is typed but not added yet, and state that a form keeps outside its draft.
  const [isTouched, setTouched] = useState(false);
  // A form without `cancel` cannot be left, so there is nothing to confirm.
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
