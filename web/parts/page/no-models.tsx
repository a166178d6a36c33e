// Advice if there are no models: operators can add one, other users must ask an operator.
import { useSession } from "../../api/session.tsx";
import { environmentNames } from "../words/environments.ts";
import { Empty } from "./empty.tsx";
import { LinkButton } from "./links.tsx";

export function NoModels() {
  const { isOperator, environment, environments } = useSession();
  const others = environments.filter((one) => one !== environment).map((one) => environmentNames[one]);
  const here = environmentNames[environment];
  if (isOperator) {
    return (
      <Empty title="No models yet" action={<LinkButton href="/admin/upstreams">Add an upstream</LinkButton>}>
        Models come from upstreams: a model server in your network, or a provider with an API key. Add an upstream, and
        its models appear here. If you have already added one, it may be unreachable, or not available in the
        environment {here}.
      </Empty>
    );
  }
  return (
    <Empty title="No models available to you">
      This account may not use any model in the environment {here}. Choose another environment at the top (
      {others.join(" or ")}
      ), or ask an operator of this server to add a model or to give you access to one.
    </Empty>
  );
}
