// Determines whose stored responses and conversations a caller sees.
import type { ResponseOwner } from "../../domain/models/stored-response.ts";
import { keyOf, makerOf, type Principal } from "../../domain/principal.ts";
import { chatOwnerOf } from "./chat-routes.ts";

export function responseOwnerOf(principal: Principal): ResponseOwner {
  return { ...chatOwnerOf(principal), madeBy: makerOf(principal), keyId: keyOf(principal).id };
}
