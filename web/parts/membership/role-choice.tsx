// The choice of a role, with an explanation of each.
import { Radio, Stack } from "@mantine/core";
import { type Role, roleMeanings, roleNames, roles } from "./roles.ts";

interface RoleChoiceProps {
  value: Role;
  change(role: Role): void;
  /** All roles by default. */
  allowed?: readonly Role[];
  /** The reason why the other roles are not allowed. */
  why?: string;
  error?: string | undefined;
}

export function RoleChoice({ value, change, allowed = roles, why, error }: RoleChoiceProps) {
  return (
    <Radio.Group
      label="Role"
      {...(why === undefined ? {} : { description: why })}
      value={value}
      onChange={(role) => change(role as Role)}
      error={error}
    >
      <Stack gap="xs" mt="xs">
        {roles.map((role) => (
          <Radio
            key={role}
            value={role}
            label={roleNames[role]}
            description={roleMeanings[role]}
            disabled={!allowed.includes(role)}
          />
        ))}
      </Stack>
    </Radio.Group>
  );
}
