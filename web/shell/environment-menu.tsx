// Chooses the environment of all pages: keys, usage, limits and chats of environments never mix.
import { NativeSelect } from "@mantine/core";
import type { Environment } from "../api/client.ts";
import { useSession } from "../api/session.tsx";
import { environmentChoices } from "../parts/words/environments.ts";

export function EnvironmentMenu() {
  const { environment, environments, chooseEnvironment } = useSession();
  return (
    <NativeSelect
      aria-label="Environment"
      size="xs"
      w={130}
      data={environmentChoices(environments)}
      value={environment}
      onChange={({ currentTarget }) => chooseEnvironment(currentTarget.value as Environment)}
    />
  );
}
