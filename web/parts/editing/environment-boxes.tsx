// Checkboxes for the environments whose keys may use something.
import { Checkbox, Group } from "@mantine/core";
import type { Environment } from "../../api/client.ts";
import { allEnvironments, environmentChoices } from "../words/environments.ts";

interface EnvironmentBoxesProps {
  label?: string;
  description?: string;
  value: readonly string[];
  /** True if the user may choose no environment. */
  mayBeEmpty?: boolean;
  error: string | undefined;
  change(environments: Environment[]): void;
}

export function EnvironmentBoxes(props: EnvironmentBoxesProps) {
  const { label = "Environments", description = "Keys of these environments may call its models." } = props;
  const { value, mayBeEmpty = false, error, change } = props;
  return (
    <Checkbox.Group
      label={label}
      description={description}
      value={[...value]}
      onChange={(chosen) => change(allEnvironments.filter((one) => chosen.includes(one)))}
      error={value.length === 0 && !mayBeEmpty ? "Choose at least one." : error}
    >
      <Group mt="xs">
        {environmentChoices(allEnvironments).map(({ value: one, label }) => (
          <Checkbox key={one} value={one} label={label} />
        ))}
      </Group>
    </Checkbox.Group>
  );
}
