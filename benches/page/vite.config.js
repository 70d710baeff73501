import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const client = fileURLToPath(new URL("../../guest-js/index.ts", import.meta.url));

export default defineConfig({
  root: fileURLToPath(new URL("web", import.meta.url)),
  base: "./",
  resolve: {
    // The client as it is in the tree, not a build that somebody forgot to renew.
    alias: { "tauri-plugin-youyou-agent-api": client },
    // Its imports resolve to what is installed here.
    dedupe: ["@tauri-apps/api"],
  },
  build: {
    outDir: fileURLToPath(new URL("dist", import.meta.url)),
    emptyOutDir: true,
    target: ["safari16"],
    chunkSizeWarningLimit: 2_000,
  },
});
