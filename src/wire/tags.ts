// Schema of a tag in the API's requests and answers.
import { z } from "zod";
import { tagPattern } from "../domain/key-tags.ts";
import { maxRequestTagLength } from "../domain/usage/request-tags.ts";

export const tag = z.string().min(1).max(maxRequestTagLength).regex(tagPattern);
