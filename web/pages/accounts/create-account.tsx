// The dialog that creates an account: its name and tier.
import { Button, Group, Modal, Stack, TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Account, CreateAccountRequest } from "../../api/types.ts";
import { problemBeside, problemOf } from "../../parts/editing/field-problem.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { TierSelect } from "./tier-select.tsx";

interface CreateAccountProps {
  opened: boolean;
  close(): void;
  done(account: Account): void;
}

export function CreateAccount({ opened, close, done }: CreateAccountProps) {
  return (
    <Modal opened={opened} onClose={close} title="Create account">
      <Form close={close} done={done} />
    </Modal>
  );
}

function Form({ close, done }: Omit<CreateAccountProps, "opened">) {
  const [name, setName] = useState("");
  const [tier, setTier] = useState("free");
  const create = useChange((body: CreateAccountRequest) => call<Account>("POST", "/v1/admin/accounts", { body }), {
    stale: ["/v1/admin/accounts", "/v1/admin/tiers"],
    done,
  });
  const problem = problemBeside(create.error, ["name", "tier"]);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate({ name, tier });
      }}
    >
      <Stack>
        <TextInput
          label="Name"
          description="Of the company, team or project, as its members will see it."
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={problemOf(create.error, "name")}
          maxLength={100}
          required
          data-autofocus
        />
        <TierSelect value={tier} change={setTier} error={problemOf(create.error, "tier")} />
        {problem && <Failure error={problem} />}
        <Group justify="end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={create.isPending}>
            Create account
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
