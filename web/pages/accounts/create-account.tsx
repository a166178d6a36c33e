// The form that creates an account: its name and tier.
import { TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Account, CreateAccountRequest } from "../../api/types.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { TierSelect } from "./tier-select.tsx";

interface CreateAccountProps {
  close(): void;
  done(account: Account): void;
}

export function CreateAccount({ close, done }: CreateAccountProps) {
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
        description="The company, team or project. Members see this name."
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
