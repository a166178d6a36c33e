// The form fields for a key's models, tags and note.
import { NativeSelect, Stack, Switch, TagsInput, Textarea } from "@mantine/core";
import { useRead } from "../../api/queries.ts";
import type { ModelList } from "../../api/types.ts";
import { PrioritySelect } from "../../parts/editing/priority-select.tsx";
import { separate } from "../../parts/editing/separate.ts";
import type { Field, KeyDraft } from "./key-draft.ts";

const cacheChoices = [
  { value: "model", label: "Use each model's setting" },
  { value: "on", label: "Always" },
  { value: "off", label: "Never" },
];

function cacheChoiceOf(value: string): KeyDraft["responseCache"] {
  return value === "on" || value === "off" ? value : "model";
}

interface PartProps {
  draft: KeyDraft;
  change(part: Partial<KeyDraft>): void;
  errorOf(field: Field): string | undefined;
}

export function ModelFields({ draft, change, errorOf }: PartProps) {
  const models = useRead<ModelList>("/v1/models");
  // Aliases are not offered, because a request for an alias counts as a request for its model.
  const ids = models.data?.data.flatMap(({ id, alias_of: model }) => (model === undefined ? [id] : [])) ?? [];
  return (
    <Stack gap="md">
      <TagsInput
        label="Models"
        description="Model ids or prefixes such as gpt-*. Leave empty to allow all."
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
      <Switch
        label="Keep requests on local servers"
        description="Requests go only to the built-in engine and to upstreams and nodes that an operator marked as local."
        checked={draft.neverLeaves}
        onChange={(event) => change({ neverLeaves: event.currentTarget.checked })}
        error={errorOf("never_leaves")}
      />
      <PrioritySelect
        label="Priority"
        description="Order of requests when a model is busy"
        unset="Same as the account's tier"
        value={draft.priority}
        change={(priority) => change({ priority })}
        error={errorOf("priority")}
      />
      <NativeSelect
        label="Cache responses"
        description="A repeated request gets the stored answer"
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
        description="Group this key's usage (up to 10)"
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
        description="Anything that colleagues should know about this key"
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
