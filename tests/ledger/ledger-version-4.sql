BEGIN TRANSACTION;
CREATE TABLE asks (
	explanation_id TEXT NOT NULL, 
	position INTEGER NOT NULL, 
	query_id TEXT NOT NULL, 
	purpose TEXT NOT NULL, 
	seen BIGINT NOT NULL, 
	note TEXT NOT NULL, 
	paid INTEGER NOT NULL, 
	checksum BIGINT, 
	PRIMARY KEY (explanation_id, position), 
	FOREIGN KEY(explanation_id) REFERENCES explanations (id), 
	FOREIGN KEY(query_id) REFERENCES queries (id)
);
INSERT INTO "asks" VALUES('f0026075128c1dd1526fc4f0de92d82b',0,'fcbbf2dcbe31f8429b558206657a064f','factual',0,'{"first": 0, "cost": 0.0, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 1.0, "reference": true, "chance": 0.5}',1,1697974973);
INSERT INTO "asks" VALUES('f0026075128c1dd1526fc4f0de92d82b',1,'debdca60ecd0eb82d85ca477b142d783','first',1,'{"first": 1, "cost": 8.409687064150008, "counts": true, "affinity": 0.963408698165354, "round": 0, "penalty": 0.0, "hope": 0.5645997759704983, "reference": true, "chance": 0.2684219551529627}',1,3410340038);
INSERT INTO "asks" VALUES('f0026075128c1dd1526fc4f0de92d82b',2,'90f7f30917d86b63195f9b809de03ed5','refine',2,'{"first": 2, "cost": 2.7361912893385445, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 0.36334436428876893, "reference": false, "chance": 0.36334436428876893}',1,1764038072);
INSERT INTO "asks" VALUES('f0026075128c1dd1526fc4f0de92d82b',3,'7579626e954dd2a7eec33521fdb78344','refine',3,'{"first": 3, "cost": 1.2167139825832802, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 0.46999777021453426, "reference": false, "chance": 0.46999777021453426}',1,791030044);
INSERT INTO "asks" VALUES('f0026075128c1dd1526fc4f0de92d82b',4,'8f883f69c456d466018d813bb6b1eeea','refine',4,'{"first": 4, "cost": 1.7466254496412739, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 0.5790698844703434, "reference": false, "chance": 0.5790698844703434}',1,428903285);
INSERT INTO "asks" VALUES('f0026075128c1dd1526fc4f0de92d82b',5,'68bba2c9b47bbb800adf62df88f5654a','refine',5,'{"first": 5, "cost": 0.7900856661467108, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 0.1836276634739088, "reference": false, "chance": 0.1836276634739088}',1,3892737792);
INSERT INTO "asks" VALUES('f0026075128c1dd1526fc4f0de92d82b',6,'362ad1608ee661a21b5338790fcdc9a2','refine',6,'{"first": 6, "cost": 2.183281812051593, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 0.567190169589085, "reference": false, "chance": 0.567190169589085}',1,1281943888);
INSERT INTO "asks" VALUES('f0026075128c1dd1526fc4f0de92d82b',7,'4eb76be28fe98871b2895fa308418951','refine',7,'{"first": 7, "cost": 0.3950428330733554, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 0.09593574778889706, "reference": false, "chance": 0.09593574778889706}',1,597993511);
INSERT INTO "asks" VALUES('f0026075128c1dd1526fc4f0de92d82b',8,'1def3f5ab4429f9e47b6638fe5c76ef9','refine',8,'{"first": 8, "cost": 1.9649536308464335, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 0.6620835313624728, "reference": false, "chance": 0.6620835313624728}',1,3266685549);
INSERT INTO "asks" VALUES('f0026075128c1dd1526fc4f0de92d82b',9,'f48cecb17ef59c72ded80b4e140b628d','refine',9,'{"first": 9, "cost": 0.6549845436154786, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 0.08596309474216747, "reference": false, "chance": 0.08596309474216747}',1,4034150656);
INSERT INTO "asks" VALUES('adf88cf44c7f8a45050e9d9ff1543394',0,'7369905941e9a8af2a238bd57fa63988','factual',10,'{"first": 0, "cost": 0.0, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 1.0, "reference": true, "chance": 0.5}',1,1757548917);
INSERT INTO "asks" VALUES('adf88cf44c7f8a45050e9d9ff1543394',1,'362ad1608ee661a21b5338790fcdc9a2','known',11,'{"first": 1, "cost": 15.767199826190561, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 1.0, "reference": false, "chance": 0.5}',0,4150904742);
INSERT INTO "asks" VALUES('adf88cf44c7f8a45050e9d9ff1543394',2,'c12a448549a21fbea460d9e0dbd5c2e0','refine',11,'{"first": 2, "cost": 8.405512989365283, "counts": true, "affinity": 0.9601255362271887, "round": 0, "penalty": 0.0, "hope": 0.4493586688881934, "reference": false, "chance": 0.4493586688881934}',1,2538916671);
INSERT INTO "asks" VALUES('adf88cf44c7f8a45050e9d9ff1543394',3,'52cd2dd452c37d8a96d39195ef725370','refine',12,'{"first": 3, "cost": 2.765299831513488, "counts": true, "affinity": 1.0, "round": 0, "penalty": 0.0, "hope": 0.486614506705062, "reference": false, "chance": 0.486614506705062}',1,638089316);
CREATE TABLE contradictions (
	id INTEGER NOT NULL, 
	query_id TEXT NOT NULL, 
	label TEXT NOT NULL, 
	told_by TEXT NOT NULL, 
	told_at TEXT NOT NULL, 
	checksum BIGINT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(query_id) REFERENCES queries (id)
);
CREATE TABLE explanations (
	id TEXT NOT NULL, 
	model_id TEXT NOT NULL, 
	factual TEXT NOT NULL, 
	settings TEXT NOT NULL, 
	started_at TEXT NOT NULL, 
	finished_at TEXT, 
	outcome TEXT, 
	space_id TEXT, 
	result TEXT, 
	seen_at_end BIGINT, 
	checksum BIGINT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(model_id) REFERENCES models (id), 
	FOREIGN KEY(space_id) REFERENCES spaces (id)
);
INSERT INTO "explanations" VALUES('f0026075128c1dd1526fc4f0de92d82b','loans-v1','{"income": 5200, "debt": 0.69, "job": "clerk"}','{"model_id": "loans-v1", "target": null, "budget": 10, "count": 1, "seed": 0, "strategy": {"name": "feasible", "revision": 4, "tolerance": 0.05, "margin": null}, "beta": 5.0, "max_changes": null, "class_names": null, "category_cost": 1.0, "change_cost": null, "plausibility": {"threshold": -1.5, "kind": "joint"}, "n_reference": 60, "labels": false, "constraint": null, "rules": [], "scores": false, "pool": true, "queries_per_round": 1, "ranges": {}, "acex": "0.2.0", "versions": {"python": "3.11.7", "numpy": "2.4.6", "scipy": "1.17.1", "scikit-learn": "1.9.1", "pandas": "3.1.1"}, "form": {"columns": ["income", "debt", "job"], "dtypes": ["int64", "float64", "str"], "array_dtype": null}}','2026-11-16T22:33:55.178787+00:00','2026-11-16T22:33:55.495608+00:00','found','b4e9d83522110620dc2554ff84fe0056','{"asked": 10, "outcome": "found", "stopped_by": "settled", "counterfactuals": [6], "steadiness": [0.3264935665116052], "worth": 0.08805492517452042, "warnings": [], "error": null, "least_usual": [""], "needed": [{"debt": "needed (asked)"}], "votes": [], "closer": [0.28191424783519603, 0.11927631157556037, 0.05043626255096625], "budget": 10}',10,87788262);
INSERT INTO "explanations" VALUES('adf88cf44c7f8a45050e9d9ff1543394','loans-v1','{"income": 3500, "debt": 0.14, "job": "clerk"}','{"model_id": "loans-v1", "target": null, "budget": 10, "count": 1, "seed": 0, "strategy": {"name": "feasible", "revision": 4, "tolerance": 0.05, "margin": null}, "beta": 5.0, "max_changes": null, "class_names": null, "category_cost": 1.0, "change_cost": null, "plausibility": {"threshold": -1.5, "kind": "joint"}, "n_reference": 60, "labels": false, "constraint": null, "rules": [], "scores": false, "pool": true, "queries_per_round": 1, "ranges": {}, "acex": "0.2.0", "versions": {"python": "3.11.7", "numpy": "2.4.6", "scipy": "1.17.1", "scikit-learn": "1.9.1", "pandas": "3.1.1"}, "form": {"columns": ["income", "debt", "job"], "dtypes": ["int64", "float64", "str"], "array_dtype": null}}','2026-11-16T22:33:55.507484+00:00',NULL,NULL,'b4e9d83522110620dc2554ff84fe0056',NULL,NULL,1504760964);
CREATE TABLE ledger_identity (
	id TEXT NOT NULL, 
	checksum BIGINT, 
	PRIMARY KEY (id)
);
INSERT INTO "ledger_identity" VALUES('5a9e5748e21e4d328847b5f979d59c71',743161229);
CREATE TABLE ledger_versions (
	version INTEGER NOT NULL, 
	acex TEXT NOT NULL, 
	migrated_at TEXT NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "ledger_versions" VALUES(4,'0.2.0','2026-11-16T22:33:55.150381+00:00');
CREATE TABLE models (
	id TEXT NOT NULL, 
	description TEXT NOT NULL, 
	features TEXT, 
	row_budget BIGINT, 
	price_per_row FLOAT, 
	n_charged BIGINT NOT NULL, 
	last_sequence BIGINT NOT NULL, 
	created_at TEXT NOT NULL, 
	checksum BIGINT, 
	PRIMARY KEY (id)
);
INSERT INTO "models" VALUES('loans-v1','function','["income", "debt", "job"]',NULL,NULL,13,13,'2026-11-16T22:33:55.163206+00:00',3701631042);
CREATE TABLE names (
	explanation_id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	checksum BIGINT, 
	PRIMARY KEY (explanation_id, name), 
	FOREIGN KEY(explanation_id) REFERENCES explanations (id)
);
CREATE TABLE queries (
	id TEXT NOT NULL, 
	model_id TEXT NOT NULL, 
	"row" TEXT NOT NULL, 
	label TEXT, 
	scores TEXT, 
	purpose TEXT NOT NULL, 
	explanation_id TEXT, 
	attempts INTEGER NOT NULL, 
	claimed_by TEXT, 
	claimed_at TEXT, 
	leased_until TEXT, 
	settled_at TEXT, 
	sequence BIGINT, 
	lease_clock TEXT, 
	lease_ends FLOAT, 
	checksum BIGINT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(model_id) REFERENCES models (id), 
	FOREIGN KEY(explanation_id) REFERENCES explanations (id)
);
INSERT INTO "queries" VALUES('fcbbf2dcbe31f8429b558206657a064f','loans-v1','[5200, 0.69, "clerk"]','"rejected"',NULL,'factual','f0026075128c1dd1526fc4f0de92d82b',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.210786+00:00','2026-11-16T22:35:55.210786+00:00','2026-11-16T22:33:55.216498+00:00',1,'a-clock',33195.682669653,3714098955);
INSERT INTO "queries" VALUES('debdca60ecd0eb82d85ca477b142d783','loans-v1','[5300, 0.58, "cook"]','"approved"',NULL,'first','f0026075128c1dd1526fc4f0de92d82b',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.236196+00:00','2026-11-16T22:35:55.236196+00:00','2026-11-16T22:33:55.248631+00:00',2,'a-clock',33195.70807968,3512453634);
INSERT INTO "queries" VALUES('90f7f30917d86b63195f9b809de03ed5','loans-v1','[5300, 0.58, "clerk"]','"approved"',NULL,'refine','f0026075128c1dd1526fc4f0de92d82b',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.286124+00:00','2026-11-16T22:35:55.286124+00:00','2026-11-16T22:33:55.304727+00:00',3,'a-clock',33195.758007263,598805196);
INSERT INTO "queries" VALUES('7579626e954dd2a7eec33521fdb78344','loans-v1','[5300, 0.65, "clerk"]','"rejected"',NULL,'refine','f0026075128c1dd1526fc4f0de92d82b',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.330992+00:00','2026-11-16T22:35:55.330992+00:00','2026-11-16T22:33:55.348681+00:00',4,'a-clock',33195.802874779,2742545287);
INSERT INTO "queries" VALUES('8f883f69c456d466018d813bb6b1eeea','loans-v1','[5200, 0.61, "clerk"]','"rejected"',NULL,'refine','f0026075128c1dd1526fc4f0de92d82b',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.375117+00:00','2026-11-16T22:35:55.375117+00:00','2026-11-16T22:33:55.392710+00:00',5,'a-clock',33195.847000786,3021562551);
INSERT INTO "queries" VALUES('68bba2c9b47bbb800adf62df88f5654a','loans-v1','[5400, 0.69, "clerk"]','"rejected"',NULL,'refine','f0026075128c1dd1526fc4f0de92d82b',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.411025+00:00','2026-11-16T22:35:55.411025+00:00','2026-11-16T22:33:55.413767+00:00',6,'a-clock',33195.882907836,64952870);
INSERT INTO "queries" VALUES('362ad1608ee661a21b5338790fcdc9a2','loans-v1','[5200, 0.59, "clerk"]','"approved"',NULL,'refine','f0026075128c1dd1526fc4f0de92d82b',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.426794+00:00','2026-11-16T22:35:55.426794+00:00','2026-11-16T22:33:55.429290+00:00',7,'a-clock',33195.898675878,2723170356);
INSERT INTO "queries" VALUES('4eb76be28fe98871b2895fa308418951','loans-v1','[5100, 0.69, "clerk"]','"rejected"',NULL,'refine','f0026075128c1dd1526fc4f0de92d82b',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.443012+00:00','2026-11-16T22:35:55.443012+00:00','2026-11-16T22:33:55.445656+00:00',8,'a-clock',33195.914894958,2727933729);
INSERT INTO "queries" VALUES('1def3f5ab4429f9e47b6638fe5c76ef9','loans-v1','[5200, 0.6, "clerk"]','"rejected"',NULL,'refine','f0026075128c1dd1526fc4f0de92d82b',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.459105+00:00','2026-11-16T22:35:55.459105+00:00','2026-11-16T22:33:55.461774+00:00',9,'a-clock',33195.930988352,334395451);
INSERT INTO "queries" VALUES('f48cecb17ef59c72ded80b4e140b628d','loans-v1','[5200, 0.72, "clerk"]','"rejected"',NULL,'refine','f0026075128c1dd1526fc4f0de92d82b',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.474551+00:00','2026-11-16T22:35:55.474551+00:00','2026-11-16T22:33:55.476964+00:00',10,'a-clock',33195.946433435,2919524950);
INSERT INTO "queries" VALUES('7369905941e9a8af2a238bd57fa63988','loans-v1','[3500, 0.14, "clerk"]','"rejected"',NULL,'factual','adf88cf44c7f8a45050e9d9ff1543394',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.512988+00:00','2026-11-16T22:35:55.512988+00:00','2026-11-16T22:33:55.515674+00:00',11,'a-clock',33195.984868971,236611805);
INSERT INTO "queries" VALUES('c12a448549a21fbea460d9e0dbd5c2e0','loans-v1','[4200, 0.14, "cook"]','"approved"',NULL,'refine','adf88cf44c7f8a45050e9d9ff1543394',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.538376+00:00','2026-11-16T22:35:55.538376+00:00','2026-11-16T22:33:55.540914+00:00',12,'a-clock',33196.010258979,1822882581);
INSERT INTO "queries" VALUES('52cd2dd452c37d8a96d39195ef725370','loans-v1','[4200, 0.14, "clerk"]','"approved"',NULL,'refine','adf88cf44c7f8a45050e9d9ff1543394',1,'host pid 1310 1eb7ec98.1 dae9f8fc started 1','2026-11-16T22:33:55.554381+00:00','2026-11-16T22:35:55.554381+00:00','2026-11-16T22:33:55.556834+00:00',13,'a-clock',33196.026262941,4081739527);
CREATE TABLE spaces (
	id TEXT NOT NULL, 
	description TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "spaces" VALUES('b4e9d83522110620dc2554ff84fe0056','{"features": [{"kind": "integer", "name": "income", "frozen": false, "direction": null, "weight": 1.0, "low": 1000, "high": 5900, "unit": "", "grid": 100}, {"kind": "continuous", "name": "debt", "frozen": false, "direction": null, "weight": 1.0, "low": 0.05, "high": 1.0, "unit": "", "grid": 0.01}, {"kind": "nominal", "name": "job", "frozen": false, "direction": null, "weight": 1.0, "categories": ["clerk", "cook"]}], "columns": ["income", "debt", "job"], "dtypes": ["int64", "float64", "str"], "array_dtype": null, "deviations": [1518.8226434387334, 0.2748156452767726, 0.4974937185533099]}');
CREATE INDEX explanations_of_model ON explanations (model_id);
CREATE UNIQUE INDEX queries_by_sequence ON queries (model_id, sequence);
COMMIT;
