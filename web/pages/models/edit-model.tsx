// Declares a model, or changes a model that was declared in the dashboard.
import { TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { CreateManagedModelRequest, ManagedModel } from "../../api/types.ts";
import { changedMembers } from "../../parts/editing/changed-members.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { RecordTitle } from "../../parts/page/section.tsx";
import { comparisonsPath } from "./comparisons.tsx";
import { DeploymentFields } from "./deployment-fields.tsx";
import { managedPath, managedPathOf, staleWithModels } from "./managed-models.ts";
import { priceText } from "./managed-words.ts";
import { fieldNames, formOf, type ModelForm, toWire } from "./model-form.ts";
import { MoreFields } from "./more-fields.tsx";
import { PolicyFields } from "./policies/policy-fields.tsx";
import { PriceFields } from "./prices/price-fields.tsx";

interface EditModelProps {
  /** The model to change; undefined for a new model. */
  model: ManagedModel | undefined;
  /** The ids of existing models. */
  ids: readonly string[];
  /** Called when the form closes; `saved` is undefined if the form was cancelled. */
  done(saved?: ManagedModel): void;
}

export function EditModel({ model, ids, done }: EditModelProps) {
  const [id, setId] = useState("");
  const [before] = useState(() => formOf(model));
  const [form, setForm] = useState(before);
  const [tried, setTried] = useState(false);
  const change = (changed: Partial<ModelForm>) => setForm({ ...form, ...changed });
  const save = useNotifiedChange(
    (body: CreateManagedModelRequest) => {
      const { id: _, ...settings } = body;
      return model
        ? call<ManagedModel>("PATCH", managedPathOf(model.id), { body: changed(settings, toWire(before)) })
        : call<ManagedModel>("POST", managedPath, { body });
    },
    {
      stale: [...staleWithModels, comparisonsPath],
      leave: done,
      said: (saved) => `${saved.id} is saved: ${priceText(saved.price).toLowerCase()}.`,
    },
  );
  const isHalf = form.priced === "own" && (form.input === "") !== (form.output === "");
  const halfPrice = tried && isHalf ? "Enter both prices, or neither." : undefined;
  const priceProblem = halfPrice ?? problemOf(save.error, "price");
  const ref = useFirstProblem(
    problemOf(save.error, "id"),
    priceProblem,
    problemOf(save.error, "input"),
    problemOf(save.error, "output"),
    problemOf(save.error, "policies"),
    ...fieldNames.map((field) => problemOf(save.error, field)),
  );
  const others = ids.filter((one) => one !== (model?.id ?? id));
  const submit = () => {
    setTried(true);
    if (!isHalf) save.mutate({ id: model?.id ?? id.trim(), ...toWire(form) });
  };
  return (
    <Form
      ref={ref}
      sending={save}
      fields={["id", "input", "cached_input", "output", "policies", ...fieldNames]}
      action={model ? "Save" : "Add model"}
      submit={submit}
      cancel={() => done()}
    >
      {model ? (
        <RecordTitle>{model.id}</RecordTitle>
      ) : (
        <TextInput
          label="Id"
          description="The model name that clients send: a new name, or the id that an upstream lists."
          placeholder="fast"
          value={id}
          onChange={(event) => setId(event.currentTarget.value)}
          error={problemOf(save.error, "id")}
          maxLength={256}
          autoComplete="off"
          spellCheck={false}
          required
          data-autofocus
        />
      )}
      <PriceFields form={form} problem={priceProblem} error={save.error} change={change} />
      <DeploymentFields
        deployments={form.deployments}
        isNew={model === undefined}
        error={problemOf(save.error, "deployments")}
        change={(deployments) => change({ deployments })}
      />
      <PolicyFields
        policies={form.policies}
        places={form.deployments.map(({ upstream }) => upstream)}
        ids={others}
        error={save.error}
        change={(policies) => change({ policies })}
      />
      <MoreFields form={form} ids={others} error={save.error} change={change} />
    </Form>
  );
}

type Settings = ReturnType<typeof toWire>;

/** Returns what differs from `before`, including the policies. */
function changed(now: Omit<CreateManagedModelRequest, "id">, before: Settings) {
  const members = changedMembers(now, before);
  return members.policies ? { ...members, policies: changedMembers(members.policies, before.policies) } : members;
}
