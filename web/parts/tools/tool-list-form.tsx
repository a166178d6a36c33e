// A form for the list of tools of a member or of an authorized app alone.
import { call } from "../../api/client.ts";
import { Form } from "../editing/form.tsx";
import { useNotifiedChange } from "../editing/notified-change.ts";
import { useDraft } from "../editing/use-draft.ts";
import { type ToolList, toolListError } from "./tool-entries.ts";
import { ToolListField } from "./tool-list-field.tsx";

interface ToolListFormProps {
  /** The API path that changes the list. */
  path: string;
  tools: ToolList;
  about: string;
  /** Paths whose answers a change makes stale. */
  stale: readonly string[];
  /** The notification after a change. */
  said: string;
  /** Leaves the form; absent if there is nothing to return to. */
  close?: () => void;
}

const kind = {
  fields: ["tools"] as const,
  errorsOf({ tools }: { tools: ToolList }) {
    const error = toolListError(tools);
    return error === undefined ? {} : { tools: error };
  },
};

export function ToolListForm({ path, tools, about, stale, said, close }: ToolListFormProps) {
  const save = useNotifiedChange((body: { tools: ToolList }) => call("PATCH", path, { body }), {
    stale,
    said: () => said,
    ...(close && { done: close }),
  });
  const { draft, errorOf, form, change, submit } = useDraft(kind, { tools }, save);
  return (
    <Form
      {...form}
      action="Save tools"
      disabled={JSON.stringify(draft.tools) === JSON.stringify(tools)}
      submit={submit((wanted) => save.mutate({ tools: wanted.tools }))}
      {...(close && { cancel: close })}
    >
      <ToolListField
        description={about}
        value={draft.tools}
        change={(changed) => change({ tools: changed })}
        error={errorOf("tools")}
      />
    </Form>
  );
}
