// The form fields for less common settings of a model: abilities, context length, access and fallbacks.
import { Group, NativeSelect, TagsInput, TextInput } from "@mantine/core";
import type { ApiFailure } from "../../api/client.ts";
import { abilities, abilityNames } from "../../api/models.ts";
import { EnvironmentBoxes } from "../../parts/editing/environment-boxes.tsx";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { MoreSettings } from "../../parts/editing/more-settings.tsx";
import { MultiChoice } from "../../parts/editing/multi-choice.tsx";
import { WholeNumber } from "../../parts/editing/whole-number.tsx";
import { fieldNames, type ModelForm, type Said } from "./model-form.ts";

interface MoreFieldsProps {
  form: ModelForm;
  /** The ids of the models that may be fallbacks. */
  ids: readonly string[];
  error: ApiFailure | null;
  change(changed: Partial<ModelForm>): void;
}

const sayings = [
  { value: "", label: "From the upstream" },
  { value: "yes", label: "Yes" },
  { value: "no", label: "No" },
];

export function MoreFields({ form, ids, error, change }: MoreFieldsProps) {
  const hasMore =
    form.fallbacks.length + form.aliases.length + form.environments.length > 0 ||
    form.context !== "" ||
    form.ownedBy !== "" ||
    abilities.some((use) => form.capabilities[use] !== "");
  const hasProblem = fieldNames.slice(3).some((field) => problemOf(error, field) !== undefined);
  return (
    <MoreSettings shown={hasMore} hasProblem={hasProblem}>
      <MultiChoice
        label="Fallback models"
        description="Used in this order when this model fails. Each is charged at its own price."
        data={[...new Set([...ids, ...form.fallbacks])].map((id) => ({ value: id, label: id }))}
        value={form.fallbacks}
        onChange={(fallbacks) => change({ fallbacks })}
        maxValues={8}
        error={problemOf(error, "fallbacks")}
      />
      <TagsInput
        label="Aliases"
        description="Other names that clients can send, such as gpt-5, or a prefix such as claude-*. Press Enter after each."
        value={form.aliases}
        onChange={(aliases) => change({ aliases })}
        maxTags={32}
        maxLength={256}
        error={problemOf(error, "aliases")}
      />
      <Group grow align="start" preventGrowOverflow={false}>
        {abilities.map((use) => (
          <NativeSelect
            key={use}
            label={abilityNames[use]}
            data={sayings}
            value={form.capabilities[use]}
            error={use === "chat" ? problemOf(error, "capabilities") : undefined}
            onChange={(event) =>
              change({ capabilities: { ...form.capabilities, [use]: event.currentTarget.value as Said } })
            }
            miw={150}
          />
        ))}
      </Group>
      <WholeNumber
        label="Context in tokens"
        description="Prompt and answer together. Defaults to the upstream's value."
        value={form.context}
        onChange={(context) => change({ context })}
        max={1_000_000_000}
        thousandSeparator=","
        error={problemOf(error, "context_length")}
      />
      <EnvironmentBoxes
        description="Keys of these environments may use this model. Defaults to the environments of its upstreams."
        value={form.environments}
        change={(environments) => change({ environments })}
        mayBeEmpty
        error={problemOf(error, "environments")}
      />
      <TextInput
        label="Owner"
        description="Shown in the list of models. Defaults to the upstream's value."
        value={form.ownedBy}
        onChange={(event) => change({ ownedBy: event.currentTarget.value })}
        maxLength={256}
        error={problemOf(error, "owned_by")}
      />
    </MoreSettings>
  );
}
