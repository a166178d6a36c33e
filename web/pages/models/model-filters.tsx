// The filters of the model list: name, ability and health. They are kept in the address.
import { Group, TextInput } from "@mantine/core";
import { SearchIcon } from "@primer/octicons-react";
import { abilities, abilitiesOf, abilityNames, mainAbilityOf } from "../../api/models.ts";
import { Choice } from "../../parts/editing/choice.tsx";
import { useAddress } from "../../parts/page/address.ts";
import type { ShownModel } from "./managed-models.ts";

const noFilter = { search: "", use: "", health: "" };

export function useModelFilters() {
  const [said, change] = useAddress(noFilter);
  const { search } = said;
  const use = abilities.find((one) => one === said.use) ?? null;
  const health = said.health === "trouble" ? "trouble" : null;
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return {
    ...{ search, use, health },
    isSet: search !== "" || use !== null || health !== null,
    change,
    clear: () => change(noFilter),
    matches({ status: model, managed, health: itsHealth }: ShownModel) {
      const deployments = [...model.deployments, ...(managed?.deployments ?? [])];
      const text = [model.id, ...deployments.flatMap(({ upstream, model: id }) => [upstream, id])]
        .join(" ")
        .toLowerCase();
      const known = abilitiesOf(model);
      const isUsed = use === null || (known.length === 0 ? mainAbilityOf(model) === use : known.includes(use));
      const isHealth = health === null || itsHealth !== "ok";
      return isUsed && isHealth && words.every((word) => text.includes(word));
    },
  };
}

export function ModelFilters({ search, use, health, change }: ReturnType<typeof useModelFilters>) {
  return (
    <Group gap="sm" align="end">
      <TextInput
        label="Search"
        placeholder="Model or upstream"
        leftSection={<SearchIcon />}
        value={search}
        onChange={(event) => change({ search: event.currentTarget.value })}
        w={{ base: "100%", xs: 260 }}
      />
      <Choice
        label="Can do"
        data={[{ value: "", label: "All" }, ...abilities.map((value) => ({ value, label: abilityNames[value] }))]}
        value={use ?? ""}
        onChange={(value) => change({ use: value ?? "" })}
        allowDeselect={false}
        w={170}
      />
      <Choice
        label="Health"
        data={[
          { value: "", label: "Any" },
          { value: "trouble", label: "With problems" },
        ]}
        value={health ?? ""}
        onChange={(value) => change({ health: value ?? "" })}
        allowDeselect={false}
        w={150}
      />
    </Group>
  );
}
