// The dialog that creates an account: its name and tier.
import { Modal, TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Account, CreateAccountRequest } from "../../api/types.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { TierSelect } from "./tier-select.tsx";

interface CreateAccountProps {
  opened: boolean;
  close(): void;
  done(account: Account): void;
}

export function CreateAccount({ opened, close, done }: CreateAccountProps) {
  return (
    <Modal opened={opened} onClose={close} title="Create account">
      <AccountForm close={close} done={done} />
    </Modal>
  );
}

function AccountForm({ close, done }: Omit<CreateAccountProps, "opened">) {
  const [name, setName] = useState("");
  const [tier, setTier] = useState("free");
  const create = useChange((body: CreateAccountRequest) => call<Account>("POST", "/v1/admin/accounts", { body }), {
    stale: ["/v1/admin/accounts", "/v1/admin/tiers"],
    done,
  });
  return (
    <Form
      sending={create}
      fields={["name", "tier"]}
      action="Create account"
      submit={() => create.mutate({ name, tier })}
      cancel={close}
    >
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
    </Form>
  );
}
