// A form for nothing but the list of tools of a member or of an app that somebody allowed.
import { call } from "../../api/client.ts";
import { Form } from "../editing/form.tsx";
import { useNotifiedChange } from "../editing/told-change.ts";
import { useDraft } from "../editing/use-draft.ts";
import { type ToolList, toolListError } from "./tool-entries.ts";
import { ToolListField } from "./tool-list-field.tsx";

interface ToolListFormProps {
  /** Where it is changed. */
  path: string;
  tools: ToolList;
  about: string;
  /** Paths whose answers a change makes stale. */
  stale: readonly string[];
  /** A sentence for who changed it. */
  said: string;
  /** Left out where there is nothing to go back to. */
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
