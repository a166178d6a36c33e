// The page Playground: tries a model by chat, text completion or embeddings, whichever it supports.
import { ColumnsIcon } from "@primer/octicons-react";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { healthOf, mainAbilityOf, useModels } from "../../api/models.ts";
import { useSession } from "../../api/session.tsx";
import type { ModelStatus } from "../../api/types.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Empty } from "../../parts/page/empty.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { NoModels } from "../../parts/page/no-models.tsx";
import { Page } from "../../parts/page/page.tsx";
import { Waiting } from "../../parts/page/waiting.tsx";
import type { AnswerPath } from "./answer-stream.ts";
import { conversationOf } from "./conversation.ts";
import { EmbeddingsTry } from "./embeddings-try.tsx";
import { ModelChoice } from "./model-choice.tsx";
import { Talk } from "./talk.tsx";

export function PlaygroundPage() {
  const { models, error, refetch } = useModels();
  if (models && models.length > 0) return <Bench models={models} />;
  return (
    <Page title="Playground">
      {error ? <Failure error={error} retry={refetch} /> : models ? <NoModels /> : <Waiting heights={[320, 80]} />}
    </Page>
  );
}

/** Number of models beside the first. */
const maxOthers = 3;

function Bench({ models }: { models: readonly ModelStatus[] }) {
  const { session, environment } = useSession();
  const [parameters, setParameters] = useSearchParams();
  const scope = `${session.person.id} ${session.account.id} ${environment}`;
  // The default is chosen once, so that it does not change under a typing user when another model's health improves.
  const [first] = useState(() => lastIn(scope, models) ?? firstOf(models));
  const chosen = parameters.get("model") ?? first;
  const model = models.find(({ id }) => id === chosen);
  const chatting = models.filter((one) => mainAbilityOf(one) === "chat");
  const compared = new Set(parameters.getAll("with").filter((id) => chatting.some((one) => one.id === id)));
  compared.delete(chosen ?? "");
  const others = model && mainAbilityOf(model) === "chat" ? [...compared].slice(0, maxOthers) : [];
  // The next model to compare with, by default one that works and has no column yet.
  const free = chatting.filter(({ id }) => id !== chosen && !others.includes(id));
  const next = free.find((one) => healthOf(one) !== "down") ?? free[0];
  const show = (id: string, ids: readonly string[]) =>
    setParameters([["model", id], ...ids.map((other) => ["with", other])], { replace: true });
  return (
    <Page
      title="Playground"
      actions={
        <>
          <ModelChoice models={models} value={model?.id ?? null} choose={(id) => show(id, others)} />
          {model && mainAbilityOf(model) === "chat" && (
            <PlainButton
              leftSection={<ColumnsIcon />}
              disabled={next === undefined || others.length === maxOthers}
              onClick={() => next && show(model.id, [...others, next.id])}
            >
              Compare
            </PlainButton>
          )}
        </>
      }
    >
      {model ? (
        <Trial model={model} models={models} scope={scope} others={others} compare={(ids) => show(model.id, ids)} />
      ) : (
        <Empty title={chosen === null ? "No model chosen" : `Model ${chosen} not found`}>
          The model may have been removed, or this account may not use it in this environment. Choose another model
          above.
        </Empty>
      )}
    </Page>
  );
}

interface TrialProps {
  model: ModelStatus;
  models: readonly ModelStatus[];
  scope: string;
  /** The ids of the models to compare with. */
  others: readonly string[];
  compare(others: readonly string[]): void;
}

function Trial({ model, models, scope, others, compare }: TrialProps) {
  const use = mainAbilityOf(model);
  if (use === "embeddings") return <EmbeddingsTry key={model.id} model={model.id} />;
  if (use === undefined) {
    return (
      <Empty title={`${model.id} cannot be tried here`}>
        This model does not support chat, text completion or embeddings. Choose another model above.
      </Empty>
    );
  }
  const path: AnswerPath = use === "chat" ? "/v1/chat/completions" : "/v1/completions";
  const conversation = conversationOf(path, scope);
  const columns = others.map((id, index) => ({
    ...{ model: id, conversation: conversationOf(path, scope, id) },
    choose: (chosen: string) => compare(others.with(index, chosen)),
    remove: () => compare(others.toSpliced(index, 1)),
  }));
  return <Talk key={path} {...{ conversation, models }} model={model.id} isChat={use === "chat"} others={columns} />;
}

/** Returns the model of the previous conversation, if it is still available. */
function lastIn(scope: string, models: readonly ModelStatus[]): string | undefined {
  const last = conversationOf("/v1/chat/completions", scope).state().model;
  return models.find(({ id }) => id === last)?.id;
}

/** Returns a healthy chat model if there is one, else any chat model, else any model. */
function firstOf(models: readonly ModelStatus[]): string | null {
  const chatting = models.filter((model) => mainAbilityOf(model) === "chat");
  const working = chatting.find(({ deployments }) => deployments.some(({ state }) => state === "ok"));
  return (working ?? chatting[0] ?? models[0])?.id ?? null;
}
