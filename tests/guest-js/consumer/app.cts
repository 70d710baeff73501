// The same package from CommonJS.
import api = require('tauri-plugin-youyou-agent-api');
import testing = require('tauri-plugin-youyou-agent-api/testing');

export const pages: Promise<api.Page<api.SessionSummary>> = api.listSessions({ limit: 1 });
export const agent: testing.MockAgent = testing.mockAgent();
