// `headrace cache`: answers that are kept to be given again.
import { z } from "zod";
import { commandGroup } from "../command.ts";
