import { fileURLToPath } from 'node:url'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

// The client comes from its sources, not from a package in node_modules: what you run is
// what is in the tree, never a build that somebody forgot to renew. An app of your own
// installs `tauri-plugin-youyou-agent-api` and needs none of these aliases.
const client = at('../../guest-js')

export default defineConfig({
  plugins: [react()],
  resolve: {
    alias: [
      { find: 'tauri-plugin-youyou-agent-api/ai-sdk', replacement: `${client}/ai-sdk.ts` },
      { find: 'tauri-plugin-youyou-agent-api/testing', replacement: `${client}/testing.ts` },
      { find: 'tauri-plugin-youyou-agent-api', replacement: `${client}/index.ts` },
    ],
    // The client's sources lie outside this folder; their imports resolve to what is
    // installed here.
    dedupe: ['@tauri-apps/api', 'ai'],
  },
  clearScreen: false,
  server: { port: 1420, strictPort: true, fs: { allow: ['.', client] } },
  build: {
    // WebKitGTK 2.44, WKWebView of macOS 13, WebView2.
    target: ['safari16', 'chrome111'],
    chunkSizeWarningLimit: 700,
    rolldownOptions: { input: { main: at('index.html'), aiSdk: at('ai-sdk.html') } },
  },
  test: { include: ['tests/**/*.test.ts'], setupFiles: ['tests/window.ts'] },
})
