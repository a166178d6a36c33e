// Chooses the model; models that cannot chat are listed separately.
import { abilities, abilityNames, mainAbilityOf } from "../../api/models.ts";
import type { ModelStatus } from "../../api/types.ts";
import { Choice } from "../../parts/editing/choice.tsx";
import { replaceOnTyping } from "../../parts/filters/replace-on-typing.ts";

interface ModelChoiceProps {
  models: readonly ModelStatus[];
  value: string | null;
  choose(id: string): void;
  label?: string;
  w?: string;
}

export function ModelChoice({ models, value, choose, label = "Model", w }: ModelChoiceProps) {
  const groups = [...abilities, undefined].map((use) => ({
    group: use ? abilityNames[use] : "Other",
    items: models.filter((model) => mainAbilityOf(model) === use).map(({ id }) => id),
  }));
  return (
    <Choice
      aria-label={label}
      placeholder="Choose a model"
      data={groups.filter(({ items }) => items.length > 0)}
      value={value}
      onChange={(id) => id !== null && choose(id)}
      allowDeselect={false}
      searchable
      {...replaceOnTyping}
      nothingFoundMessage="No matching model"
      maxDropdownHeight={400}
      w={w ?? { base: "100%", sm: 280 }}
    />
  );
}
