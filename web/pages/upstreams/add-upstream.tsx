// Adds a model server: its address is tested first, and the models that it has are shown before it is saved.
import { Button, Group, PasswordInput, Stack, TextInput } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type FormEvent, useState } from "react";
import { useSearchParams } from "wouter";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { CreateUpstreamRequest, Upstream, UpstreamTest } from "../../api/types.ts";
import { problemBeside, problemOf } from "../../parts/editing/field-problem.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { count } from "../../parts/words/figures.ts";
import { suggestedName } from "./suggested-name.ts";
import { TestResult } from "./test-result.tsx";
import { fieldNames, MoreFields, settingsToWire, usualSettings } from "./upstream-fields.tsx";

interface AddUpstreamProps {
  /** Names that there are. */
  taken: readonly string[];
  close(): void;
  done(upstream: Upstream): void;
}

export function AddUpstream({ taken, close, done }: AddUpstreamProps) {
  const [search] = useSearchParams();
  const [url, setUrl] = useState(search.get("url") ?? "");
  const [apiKey, setApiKey] = useState("");
  const [name, setName] = useState("");
  const [settings, setSettings] = useState(usualSettings);
  const server = { url: url.trim(), ...(apiKey === "" ? {} : { api_key: apiKey }) };
  const test = useChange((body: typeof server) => call<UpstreamTest>("POST", "/v1/admin/upstream-tests", { body }), {
    done(_result, tested) {
      if (name === "") setName(suggestedName(tested.url, taken));
    },
  });
  const add = useChange((body: CreateUpstreamRequest) => call<Upstream>("POST", "/v1/admin/upstreams", { body }), {
    stale: ["/v1/admin/upstreams", "/v1/admin/models", "/v1/model-status", "/v1/models"],
    leave: done,
    done(upstream) {
      const models = upstream.models === 1 ? "1 model" : `${count(upstream.models)} models`;
      notifications.show({ message: `${upstream.name} is added, with ${models}.` });
    },
  });
  // Of what the fields say now.
  const tested =
    test.variables?.url === server.url && test.variables.api_key === server.api_key ? test.data : undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!tested) {
      add.reset();
      test.mutate(server);
    } else add.mutate({ ...server, name, ...settingsToWire(settings) });
  };
  const error = add.error ?? test.error;
  const problem = problemBeside(error, fieldNames);
  const isBusy = test.isPending || add.isPending;
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          label="Address"
          description="Of its OpenAI-compatible API, nearly always ending in /v1."
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
        <PasswordInput
          label="API key"
          description="If it asks for one. It is kept sealed and not shown again."
          value={apiKey}
          onChange={(event) => setApiKey(event.currentTarget.value)}
          error={problemOf(error, "api_key")}
          autoComplete="off"
          visibilityToggleButtonProps={{ "aria-label": "Show the API key" }}
        />
        {tested && <TestResult result={tested} />}
        {tested && (
          <TextInput
            label="Name"
            description="For logs and records: lower-case letters, digits, dots, underscores and hyphens."
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            error={problemOf(error, "name")}
            maxLength={63}
            autoComplete="off"
            required
          />
        )}
        {tested && <MoreFields settings={settings} change={setSettings} error={error} />}
        {problem && <Failure error={problem} />}
        <Group justify="end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" loading={isBusy} disabled={tested !== undefined && settings.environments.length === 0}>
            {actionOf(tested)}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function actionOf(tested: UpstreamTest | undefined): string {
  if (!tested) return "Test the connection";
  return tested.ok ? "Add upstream" : "Add all the same";
}
