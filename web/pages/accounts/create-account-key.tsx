// The dialog that creates an API key for an account and then shows the key once.
import { Checkbox, Modal, NativeSelect, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { call, type Environment } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import { useSession } from "../../api/session.tsx";
import type { Account, CreateAccountKeyRequest, CreatedApiKey } from "../../api/types.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { ShownOnce } from "../../parts/secrets/shown-once.tsx";
import { environmentChoices } from "../../parts/words/environments.ts";
import { scopes as allScopes, defaultScopes, type Scope } from "../../parts/words/scopes.ts";

const day = 86_400;
const lives = [
  { value: "", label: "Never" },
  { value: `${7 * day}`, label: "In 7 days" },
  { value: `${30 * day}`, label: "In 30 days" },
  { value: `${90 * day}`, label: "In 90 days" },
  { value: `${365 * day}`, label: "In a year" },
];

interface CreateAccountKeyProps {
  opened: boolean;
  account: Account;
  close(): void;
}

export function CreateAccountKey({ opened, account, close }: CreateAccountKeyProps) {
  const [made, setMade] = useState<CreatedApiKey>();
  const done = (key: CreatedApiKey) => {
    close();
    setMade(key);
  };
  return (
    <>
      <Modal opened={opened} onClose={close} title={`Create an API key for ${account.name}`}>
        <KeyForm account={account} close={close} done={done} />
      </Modal>
      <ShownOnce
        title={`The API key ${made?.name ?? ""}`}
        secret={made?.key}
        label="Copy the key"
        close={() => setMade(undefined)}
      >
        Anyone with this key uses {account.name}, so send it in a safe way.
      </ShownOnce>
    </>
  );
}

interface KeyFormProps extends Omit<CreateAccountKeyProps, "opened"> {
  done(key: CreatedApiKey): void;
}

function KeyForm({ account, close, done }: KeyFormProps) {
  const { environments } = useSession();
  const path = `/v1/admin/accounts/${account.id}/keys`;
  const [name, setName] = useState("");
  const [environment, setEnvironment] = useState<Environment>(environments[0] ?? "live");
  const [scopes, setScopes] = useState<string[]>([...defaultScopes]);
  const [life, setLife] = useState("");
  const create = useChange((body: CreateAccountKeyRequest) => call<CreatedApiKey>("POST", path, { body }), {
    stale: [path],
    done,
  });
  const expiry = life === "" ? {} : { expires_in: Number(life) };
  return (
    <Form
      sending={create}
      fields={["name", "environment", "scopes", "expires_in"]}
      action="Create API key"
      disabled={scopes.length === 0}
      submit={() => create.mutate({ name, environment, scopes: scopes as Scope[], ...expiry })}
      cancel={close}
    >
      <TextInput
        label="Name"
        description="What the key is for"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={problemOf(create.error, "name")}
        maxLength={100}
        required
        data-autofocus
      />
      <NativeSelect
        label="Environment"
        data={environmentChoices(environments)}
        value={environment}
        onChange={(event) => setEnvironment(event.currentTarget.value as Environment)}
        error={problemOf(create.error, "environment")}
      />
      <Checkbox.Group
        label="Permissions"
        value={scopes}
        onChange={setScopes}
        error={scopes.length === 0 ? "Choose at least one permission." : problemOf(create.error, "scopes")}
      >
        <Stack gap={6} mt={6}>
          {allScopes.map(({ scope, title, meaning }) => (
            <Checkbox key={scope} value={scope} label={title} description={meaning} />
          ))}
        </Stack>
      </Checkbox.Group>
      <NativeSelect
        label="Expires"
        data={lives}
        value={life}
        onChange={(event) => setLife(event.currentTarget.value)}
        error={problemOf(create.error, "expires_in")}
      />
    </Form>
  );
}
