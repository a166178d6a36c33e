// The environments whose keys may use a node's models.
import { Checkbox, Group } from "@mantine/core";
import type { Environment } from "../../api/client.ts";
import { allEnvironments, environmentChoices } from "../../parts/environments.ts";

interface EnvironmentBoxesProps {
  value: readonly Environment[];
  error: string | undefined;
  change(environments: Environment[]): void;
}

export function EnvironmentBoxes({ value, error, change }: EnvironmentBoxesProps) {
  return (
    <Checkbox.Group
      label="Environments"
      description="Keys of these may call its models."
      value={[...value]}
      onChange={(chosen) => change(allEnvironments.filter((one) => chosen.includes(one)))}
      error={value.length === 0 ? "Choose at least one." : error}
    >
      <Group mt="xs">
        {environmentChoices(allEnvironments).map(({ value: one, label }) => (
          <Checkbox key={one} value={one} label={label} />
        ))}
      </Group>
    </Checkbox.Group>
  );
}
