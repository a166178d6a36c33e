// The fields of a key that say which models and tools it may use and what is to be known about it.
import { NativeSelect, Stack, Switch, TagsInput, Textarea } from "@mantine/core";
import { useRead } from "../../api/queries.ts";
import type { ModelList } from "../../api/types.ts";
import { PrioritySelect } from "../../parts/editing/priority-select.tsx";
import { separate } from "../../parts/editing/separate.ts";
import { ToolListField } from "../../parts/tools/tool-list-field.tsx";
import type { Field, KeyDraft } from "./key-draft.ts";

const cacheChoices = [
  { value: "model", label: "As each model says" },
  { value: "on", label: "Yes, of every model" },
  { value: "off", label: "No, and none of its answers are kept" },
];

function cacheChoiceOf(value: string): KeyDraft["responseCache"] {
  return value === "on" || value === "off" ? value : "model";
}

interface PartProps {
  draft: KeyDraft;
  change(part: Partial<KeyDraft>): void;
  errorOf(field: Field): string | undefined;
}

export function ReachFields({ draft, change, errorOf }: PartProps) {
  const models = useRead<ModelList>("/v1/models");
  // An alias counts as the model that it stands for.
  const ids = models.data?.data.flatMap(({ id, alias_of: model }) => (model === undefined ? [id] : [])) ?? [];
  return (
    <Stack gap="md">
      <TagsInput
        label="Models"
        description="Ids, or beginnings of ids with an asterisk; none: all of the environment"
        placeholder={draft.models.length === 0 ? "qwen3-*" : ""}
        value={draft.models}
        onChange={(chosen) => change({ models: separate(chosen) })}
        splitChars={[",", ";", " ", "\n"]}
        maxTags={100}
        data={ids}
        limit={50}
        openOnFocus={false}
        error={errorOf("models")}
      />
      {(draft.scopes.includes("tools:use") || draft.tools !== null) && (
        <ToolListField
          description="Which it may use, of those that whoever makes it may use"
          value={draft.tools}
          change={(tools) => change({ tools })}
          error={errorOf("tools")}
        />
      )}
      <Switch
        label="Its requests never leave"
        description="They go only to the built-in engine and to upstreams and nodes that an operator marked as local."
        checked={draft.neverLeaves}
        onChange={(event) => change({ neverLeaves: event.currentTarget.checked })}
        error={errorOf("never_leaves")}
      />
      <PrioritySelect
        label="Highest priority"
        description="Whose requests are first where several wait for a model"
        unset="That of the account's tier"
        value={draft.priority}
        change={(priority) => change({ priority })}
        error={errorOf("priority")}
      />
      <NativeSelect
        label="Kept answers"
        description="Whether it gets the answer that the same request got before"
        value={draft.responseCache}
        onChange={(event) => change({ responseCache: cacheChoiceOf(event.currentTarget.value) })}
        data={cacheChoices}
        error={errorOf("response_cache")}
      />
    </Stack>
  );
}

export function NoteFields({ draft, change, errorOf }: PartProps) {
  return (
    <Stack gap="md">
      <TagsInput
        label="Tags"
        description="What its usage is counted under, at most 10"
        placeholder={draft.tags.length === 0 ? "team-a" : ""}
        value={draft.tags}
        onChange={(tags) => change({ tags: separate(tags) })}
        splitChars={[",", ";", " ", "\n"]}
        maxTags={10}
        openOnFocus={false}
        error={errorOf("tags")}
      />
      <Textarea
        label="Note"
        description="What colleagues should know about it"
        value={draft.note}
        onChange={(event) => change({ note: event.currentTarget.value })}
        maxLength={1000}
        autosize
        minRows={2}
        maxRows={8}
        error={errorOf("note")}
      />
    </Stack>
  );
}
