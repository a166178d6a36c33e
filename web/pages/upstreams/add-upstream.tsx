// Adds a model server: tests its address and shows its models before saving.
import { TextInput } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { CreateUpstreamRequest, Upstream, UpstreamTest } from "../../api/types.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { counted } from "../../parts/words/figures.ts";
import { suggestedName } from "./suggested-name.ts";
import { TestResult } from "./test-result.tsx";
import {
  ApiField,
  ApiKeyField,
  defaultSettings,
  fieldNames,
  MoreFields,
  settingsToWire,
  speechToWire,
} from "./upstream-fields.tsx";
import { staleWithUpstreams, upstreamsPath } from "./upstream-paths.ts";

interface AddUpstreamProps {
  /** The names of existing model servers. */
  taken: readonly string[];
  close(): void;
  done(upstream: Upstream): void;
}

export function AddUpstream({ taken, close, done }: AddUpstreamProps) {
  const [search] = useSearchParams();
  const [url, setUrl] = useState(search.get("url") ?? "");
  const [apiKey, setApiKey] = useState("");
  const [name, setName] = useState("");
  const [suggested, setSuggested] = useState("");
  const [settings, setSettings] = useState(defaultSettings);
  const server = { url: url.trim(), ...(apiKey === "" ? {} : { api_key: apiKey }), ...speechToWire(settings) };
  const test = useChange((body: typeof server) => call<UpstreamTest>("POST", "/v1/admin/upstream-tests", { body }), {
    done(_result, tested) {
      const next = suggestedName(tested.url, taken);
      setSuggested(next);
      // A name that the person typed stays; a suggestion for an earlier address does not.
      if (name === "" || name === suggested) setName(next);
    },
  });
  const add = useNotifiedChange((body: CreateUpstreamRequest) => call<Upstream>("POST", upstreamsPath, { body }), {
    stale: staleWithUpstreams,
    leave: done,
    said: (upstream) => `${upstream.name} was added with ${counted(upstream.models, "model")}.`,
  });
  // A result for an earlier address, key or API is not shown.
  const tested = JSON.stringify(test.variables) === JSON.stringify(server) ? test.data : undefined;
  const submit = () => {
    if (!tested) {
      add.reset();
      test.mutate(server);
    } else add.mutate({ ...server, name, ...settingsToWire(settings) });
  };
  const error = add.error ?? test.error;
  return (
    <Form
      sending={{ isPending: test.isPending || add.isPending, error }}
      fields={fieldNames}
      action={actionOf(tested)}
      disabled={tested !== undefined && settings.environments.length === 0}
      submit={submit}
      cancel={close}
    >
      <TextInput
        label="Base URL"
        description="Usually ending in /v1"
        placeholder="http://10.0.0.5:8000/v1"
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value)}
        error={problemOf(error, "url")}
        inputMode="url"
        autoComplete="off"
        spellCheck={false}
        required
        data-autofocus
      />
      <ApiKeyField
        description="Optional. Stored encrypted; not shown again."
        value={apiKey}
        change={setApiKey}
        error={problemOf(error, "api_key")}
      />
      <ApiField settings={settings} change={setSettings} error={error} />
      {tested && <TestResult result={tested} />}
      {tested && (
        <TextInput
          label="Name"
          description="Used in logs and usage. Lower-case letters, digits, dots, underscores and hyphens. Cannot be changed later."
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={problemOf(error, "name")}
          maxLength={63}
          autoComplete="off"
          required
        />
      )}
      <MoreFields settings={settings} change={setSettings} error={error} />
    </Form>
  );
}

function actionOf(tested: UpstreamTest | undefined): string {
  if (!tested) return "Test connection";
  return tested.ok ? "Add upstream" : "Add anyway";
}
