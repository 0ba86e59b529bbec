-- A store of schema version 5, as `sqlite3 FILE .dump` wrote it. tests/api/faults/test_upgrade.py says what is in it.
PRAGMA auto_vacuum=2;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE threads (
    thread_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (thread_id)) WITHOUT ROWID;
INSERT INTO threads VALUES(':11111111-1111-4111-8111-111111111111',525853441148894422,1794842902620336,1794842902625485);
INSERT INTO threads VALUES(':11111111-1111-4111-8111-111111111113',3883260625392263382,1794842902637507,1794842902637507);
CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT,
    run_id TEXT,
    metadata TEXT NOT NULL,
    checkpoint BLOB NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
INSERT INTO checkpoints VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be34-6db2-bfff-555de26cbdbb',NULL,'01a1e4f9-405a-7e6e-a7cd-1d13d558133d','{"source":"input","step":-1,"parents":{},"created_by":"system","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0","run_id":"01a1e4f9-405a-7e6e-a7cd-1d13d558133d","thread_id":"11111111-1111-4111-8111-111111111111","graph_id":"echo","run_attempt":1}',X'0228b52ffd604000c50400c2871c23b0a70d0cc3300c8bc40d6d8bc6447799a9b1840db090ecda9da4a5ccb6b7cb00225204b399c9111fa2b8c25118d231c86f3c124c9f58c8f4300f7aea88248066c308e6bae5f798e0d83e75bad8d26eef43db77665631c656dbded432f856bcaeafcb946d5bbbd02d642d3455aa0b8a00500b0030e4a3fa89312b5b68771937842478c53a41275a49438bd87e846088c537502b88');
INSERT INTO checkpoints VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be35-6334-8000-e764f7326406','1f1e1d25-be34-6db2-bfff-555de26cbdbb','01a1e4f9-405a-7e6e-a7cd-1d13d558133d','{"source":"loop","step":0,"parents":{},"created_by":"system","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0","run_id":"01a1e4f9-405a-7e6e-a7cd-1d13d558133d","thread_id":"11111111-1111-4111-8111-111111111111","graph_id":"echo","run_attempt":1}',X'0228b52ffd606e016d070082cb262690a7e9ffffffff0f8411e3b7d672b2df761bb44c6f97dbb6bda59452cabb4135ccecad8f4d6a8be8c0b0cd7e58a9b6be63d3dc19b5970ee2f5aa3aec24c2d31414d66014c78331502007678c640082121a88c01923210088160805228a1872252f0bab85b97c3d61fa02e4688fc37951d755cab95f9a3065e376aa7ab6553b445cb7aa7dacad394ef676ddc4ec94995899e017f4efdfa42100091b001104f133e50be3f20504ca6a12e9f5eed7c9b8ec7b9a112e8471ef89443c858110c41870db264e78900238570153c2d1d20207111e245c1298dbc125160222dafa43eb817ee46588c537502b88');
INSERT INTO checkpoints VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be35-6532-8001-e999bcd6636e','1f1e1d25-be35-6334-8000-e764f7326406','01a1e4f9-405a-7e6e-a7cd-1d13d558133d','{"source":"loop","step":1,"parents":{},"created_by":"system","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0","run_id":"01a1e4f9-405a-7e6e-a7cd-1d13d558133d","thread_id":"11111111-1111-4111-8111-111111111111","graph_id":"echo","run_attempt":1}',X'0228b52ffd6041014d060062c92026a0371dffcf5555230ce088dcf82f716569f80c559043e4de526e299776671d4e8424418d360989a5ac652196c25495a110784c044bb20c2e2d18c072286a72a829616ef73ed8b20fffb4e71046233abefdaeeee9a63b54823b3fdfba2f5f2b47566649117577646f0db2d465b61a23b6293d5e3b5bf29309c184f6073efb5d136956170030093c2a8e805424a4b170b8373aa659bc90c910ac18036edbc4090f5200e72ab0301a28e168627b54c22597b91db0c49a56445b7f683dd08fbc0cb1f8066a0511');
INSERT INTO checkpoints VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be41-6ac6-8002-e41a361dd9df','1f1e1d25-be35-6532-8001-e999bcd6636e','01a1e4f9-4060-73d2-a5f5-036d15b1d8c1','{"source":"input","step":2,"parents":{},"created_by":"system","graph_id":"echo","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0","run_id":"01a1e4f9-4060-73d2-a5f5-036d15b1d8c1","thread_id":"11111111-1111-4111-8111-111111111111","run_attempt":1}',X'0228b52ffd608a013d0800424d2e2d8037cd0133b09a1889716899218806c48f7b91b506b1fb2f4dc5106da82db449c896cd3d62043abda3e2b69bd84f42a4253909c1542a04028b850780e4b0047c3e18457daa8a401405c68c481c74c22880e884a21a45211248454eeacf07b358eae30cd41a9d3bdebde878dfa5638d6db472b99ba36cdb97678d9d019240218e71a16bb9d23d76638d3df50ebf6fc771633b88307bce43d7f8a36b5b930b3a1a70fdd183c53b4fbfec7821db6de4367c03f8f5bf444322051a00b422c2abf250c0c40bf21512278c8b54246a2c0c84204cb328219320583106dcb689131ea400ce5560613450c2d1c5f608c2c5adb91dbbc49a40445b7f683dd08fbc0cb1f8066a0511');
INSERT INTO checkpoints VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be41-6d28-8003-7c6468604d85','1f1e1d25-be41-6ac6-8002-e41a361dd9df','01a1e4f9-4060-73d2-a5f5-036d15b1d8c1','{"source":"loop","step":3,"parents":{},"created_by":"system","graph_id":"echo","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0","run_id":"01a1e4f9-4060-73d2-a5f5-036d15b1d8c1","thread_id":"11111111-1111-4111-8111-111111111111","run_attempt":1}',X'0228b52ffd606d012d0700b28a2528a0a739ffd8bf20af6f557589146bff57124be2129eea70cb24534a29252afe2874e6f6c5d94b56ee8e3a94a21a7524020f110c83008806c40169e483124514291ca8443e28592093b334cb3449d9aee572db56ce5f864ca56e4d7dddeb6f36870c192f44084f02c06e737f46e555c78e21ebfec7e8efec056d2de2afd7e72bf92158ad2f9fdce45667aacc2bd339e0b932596150541b004a09ffb39d6677bb37cc0ca948d95858084150019b4d1713245ec878086b8c01b76de284072980731530251c2d2d7010a100e1e2c0dc0e2eb11010d1d61f5a0ff4232f432cbe815a4104');
INSERT INTO checkpoints VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be41-6f08-8004-174d5735e96f','1f1e1d25-be41-6d28-8003-7c6468604d85','01a1e4f9-4060-73d2-a5f5-036d15b1d8c1','{"source":"loop","step":4,"parents":{},"created_by":"system","graph_id":"echo","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0","run_id":"01a1e4f9-4060-73d2-a5f5-036d15b1d8c1","thread_id":"11111111-1111-4111-8111-111111111111","run_attempt":1}',X'0228b52ffd604101650600d2892123a0451d600512204ff3ec85c6b4996d07b3d0c0f896292599524a549a0fc446d66e22770ab528814aa885093044002828393095002121063350ce3449ce243577ed75afbfe90e193286341cefb1ebddcfa8bcead83164ad90bffcebfa9efd6e19b28edabdb6de20f65c8cf8eb31ea95fc16ab29942f9b9b36537d5e9f9688ce95c9cda45101170030093c2a8e805424a4b170b8373aa659bc90c910ac18036edbc4090f5200e72ab0301a28e1e8627b04e1e2d6dc0e2eb11010d1d61f5a0ff0231a432cbe815a4104');
INSERT INTO checkpoints VALUES(':11111111-1111-4111-8111-111111111113','assistant:e234584d-b7bf-527f-9d06-ba77f8f5172d','1f1e1d25-be5f-6224-bfff-8e28a3c782a9',NULL,'01a1e4f9-4069-77a5-96a9-cee805ed1471','{"source":"input","step":-1,"parents":{},"created_by":"system","assistant_id":"e234584d-b7bf-527f-9d06-ba77f8f5172d","run_id":"01a1e4f9-4069-77a5-96a9-cee805ed1471","thread_id":"11111111-1111-4111-8111-111111111113","graph_id":"approval","run_attempt":1}',X'0228b52ffd603b00ad040072c71b24a0a739ffffffff3f90a781d7b82d849a5d9acc2c2e6e6d2f6d92449eae1df5a3b234590155a9a96010501a9b8323178c0493a40a273dc983fa4c730450559241fd3a9fb9f75f6b6e455047223f9758f1b17c3be75cb699db4e269765cc5c1e79bbd514337c0cd911edfb376a00500b0030e4a3fa89312b5b68771937842478c53a41275a49438bd87e846088c537502b88');
INSERT INTO checkpoints VALUES(':11111111-1111-4111-8111-111111111113','assistant:e234584d-b7bf-527f-9d06-ba77f8f5172d','1f1e1d25-be5f-645e-8000-c509d084d9fa','1f1e1d25-be5f-6224-bfff-8e28a3c782a9','01a1e4f9-4069-77a5-96a9-cee805ed1471','{"source":"loop","step":0,"parents":{},"created_by":"system","assistant_id":"e234584d-b7bf-527f-9d06-ba77f8f5172d","run_id":"01a1e4f9-4069-77a5-96a9-cee805ed1471","thread_id":"11111111-1111-4111-8111-111111111113","graph_id":"approval","run_attempt":1}',X'0228b52ffd6063012d0700224b2525a027e9ffffff8fa86dcf672e196d6fd2359b5348f8d5b6dc524a22255d3bd4cfcbe55b42728a27e9b59231b95ac974ccdbbac54c2f19f62d77c3bc323820709ca541481cebac41041c6741e108386b9081c3a360349644c1f3305c797ed3f5cd9a8a109dd148bad56262a64aac284688725928a68d4ce13287887d6d956fb16ddd267bfb264d0aa34c4427629fc0bf5f910680231a000604c12de50be0f205f8c96a06e9f5ea779036820f0b61dc7a22914e6120043106dcb289131ca400cd55c09070b0b4c4418407099704e6767089858088b6fed07aa01f791962f10dd40a22');
CREATE TABLE writes (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    idx INTEGER NOT NULL,
    task_path TEXT NOT NULL,
    channel TEXT NOT NULL,
    type TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)) WITHOUT ROWID;
INSERT INTO writes VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be34-6db2-bfff-555de26cbdbb','a0f2e0d4-879b-816d-c4c7-d5a7b8b77816',0,'~__pregel_pull, __start__','messages','hd1',X'015b7b22726f6c65223a2275736572222c22636f6e74656e74223a225761727020616e642077656674227d5d');
INSERT INTO writes VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be34-6db2-bfff-555de26cbdbb','a0f2e0d4-879b-816d-c4c7-d5a7b8b77816',1,'~__pregel_pull, __start__','branch:to:reply','hd1',X'016e756c6c');
INSERT INTO writes VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be35-6334-8000-e764f7326406','a1dd0ea3-c31a-8b0f-e92a-b37685564a86',0,'~__pregel_pull, reply','messages','hd1',X'015b7b2224223a226d657373616765222c2274797065223a226169222c22636f6e74656e74223a22596f7520736169643a205761727020616e642077656674222c226964223a226c635f72756e2d2d30316131653466392d343035632d373433352d383965342d343938373339323233323761227d5d');
INSERT INTO writes VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be41-6ac6-8002-e41a361dd9df','f93560d3-c74d-3447-8811-2ff877af0868',0,'~__pregel_pull, __start__','messages','hd1',X'015b7b22726f6c65223a2275736572222c22636f6e74656e74223a2241207365636f6e64207475726e227d5d');
INSERT INTO writes VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be41-6ac6-8002-e41a361dd9df','f93560d3-c74d-3447-8811-2ff877af0868',1,'~__pregel_pull, __start__','branch:to:reply','hd1',X'016e756c6c');
INSERT INTO writes VALUES(':11111111-1111-4111-8111-111111111111','assistant:046b5dc7-2108-582c-9c6c-31d556d138f0','1f1e1d25-be41-6d28-8003-7c6468604d85','7a36e3d8-80ff-5a1e-95d5-961eadadf83a',0,'~__pregel_pull, reply','messages','hd1',X'015b7b2224223a226d657373616765222c2274797065223a226169222c22636f6e74656e74223a22596f7520736169643a2041207365636f6e64207475726e222c226964223a226c635f72756e2d2d30316131653466392d343036312d373665352d383965612d393536633861396566393061227d5d');
INSERT INTO writes VALUES(':11111111-1111-4111-8111-111111111113','assistant:e234584d-b7bf-527f-9d06-ba77f8f5172d','1f1e1d25-be5f-6224-bfff-8e28a3c782a9','d3daed20-2a7d-93ec-0505-33f078dd4fcd',0,'~__pregel_pull, __start__','messages','hd1',X'015b7b22726f6c65223a2275736572222c22636f6e74656e74223a225368616c6c20493f227d5d');
INSERT INTO writes VALUES(':11111111-1111-4111-8111-111111111113','assistant:e234584d-b7bf-527f-9d06-ba77f8f5172d','1f1e1d25-be5f-6224-bfff-8e28a3c782a9','d3daed20-2a7d-93ec-0505-33f078dd4fcd',1,'~__pregel_pull, __start__','branch:to:ask','hd1',X'016e756c6c');
INSERT INTO writes VALUES(':11111111-1111-4111-8111-111111111113','assistant:e234584d-b7bf-527f-9d06-ba77f8f5172d','1f1e1d25-be5f-645e-8000-c509d084d9fa','1c8064f3-5b87-c819-24dd-c5ddb5d8721d',-3,'~__pregel_pull, ask','__interrupt__','hd1',X'015b7b2224223a22696e74657272757074222c2276616c7565223a7b227175657374696f6e223a225368616c6c204920616e737765723f222c22746f223a225368616c6c20493f227d2c226964223a226562666531323363323037656163366561373836633464373761353931373034227d5d');
CREATE TABLE chunks (
    thread_id TEXT NOT NULL,
    stream TEXT NOT NULL,
    seq INTEGER NOT NULL,
    hash BLOB NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (thread_id, stream, seq));
INSERT INTO chunks VALUES(':11111111-1111-4111-8111-111111111111','messages',1,X'6b156b17037cdf4e4597cf7d65b82f6a',X'0228b52ffd20d8c50300c246171b7069dbac7ffd44fb4f8c5aec1f57952fe8a55b640722fef6ffef058dc18b89b8728fa5d7b68ea7d47da7d3af441b6274bfc22c84369c002b70e2308701a0319829aa246d665347872047bc7aecbb2bcdecd4a848dae230850f62614107006ff8d0abe8c01f8bfa3c94df57292e7a8b0bf2d50208');
INSERT INTO chunks VALUES(':11111111-1111-4111-8111-111111111111','messages',2,X'f2536f05503e02e2529900ce9560422f',X'0228b52ffd603d00d50400c2891e1b706975acfff619f63e1ba5153daefa5d5a5a4ba4082571c6ffff4a4df1566ac80b766a74d6129f71ef39d53e791b3a85316196d311714f3982959ad974b1b6dfd7d895eeba5368dfe0bec409fd91490aee70026d60e5300801d014dc9b06544bf5194fe8389e78edd3217463559d72b9c097381df920121e040900403cd7bcb03bc2f286afbf57f19e8732f12ac5456f7141be5a0001');
INSERT INTO chunks VALUES(':11111111-1111-4111-8111-111111111111','messages',3,X'4a33f2079936ed572422a6d86a3c03f2',X'0228b52ffd60b1008d0500020b221d6049e20660e08fbeaf99b04d92f4420024b459d76865b333ee0904e17089824b622b3152c7a4f33afb3b6baf192febeb72948e8fb8f58c468faccd54b2661c08d2cda0d681082c2662ca4549af2ba19bd4bd32459f98aee32b7f3b8c02754002da800fe4301000240a6ec5c3cc66aef32b85c28f578faa941fcd54462182ad04d28d0982c103010d00402848e00d1f20c079e07dae79617784e50d5f7fafe23d0f65e2558a8bdee2827cb50002');
CREATE TABLE assistants (
    principal TEXT NOT NULL,
    assistant_id TEXT NOT NULL,
    graph_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, assistant_id)) WITHOUT ROWID;
INSERT INTO assistants VALUES('','046b5dc7-2108-582c-9c6c-31d556d138f0','echo',1794842902584107,1794842902584107,1,'echo','{"graph_id":"echo","name":"echo","description":"Says back what it was told.","config":{},"context":{},"metadata":{"created_by":"system"}}');
INSERT INTO assistants VALUES('','e234584d-b7bf-527f-9d06-ba77f8f5172d','approval',1794842902585770,1794842902585770,1,'approval','{"graph_id":"approval","name":"approval","description":"Asks before it answers.","config":{},"context":{},"metadata":{"created_by":"system"}}');
CREATE TABLE assistant_versions (
    principal TEXT NOT NULL,
    assistant_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, assistant_id, version)) WITHOUT ROWID;
INSERT INTO assistant_versions VALUES('','046b5dc7-2108-582c-9c6c-31d556d138f0',1,1794842902584107,'{"graph_id":"echo","name":"echo","description":"Says back what it was told.","config":{},"context":{},"metadata":{"created_by":"system"}}');
INSERT INTO assistant_versions VALUES('','e234584d-b7bf-527f-9d06-ba77f8f5172d',1,1794842902585770,'{"graph_id":"approval","name":"approval","description":"Asks before it answers.","config":{},"context":{},"metadata":{"created_by":"system"}}');
CREATE TABLE thread_info (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    state_updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    event_seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id));
INSERT INTO thread_info VALUES('','11111111-1111-4111-8111-111111111111',5,'idle',1794842902613325,1794842902626178,1794842902626178,NULL,8,'{"metadata":{"graph_id":"echo","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0"},"config":{"configurable":{"user-agent":"python-httpx/0.28.1"}},"head":{"ns":"assistant:046b5dc7-2108-582c-9c6c-31d556d138f0","checkpoint_id":"1f1e1d25-be41-6f08-8004-174d5735e96f","graph_id":"echo","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0"}}');
INSERT INTO thread_info VALUES('','11111111-1111-4111-8111-111111111112',1,'idle',1794842902616105,1794842902616105,1794842902616105,NULL,0,'{"metadata":{"title":"The blue scarf"}}');
INSERT INTO thread_info VALUES('','11111111-1111-4111-8111-111111111113',3,'interrupted',1794842902617597,1794842902638982,1794842902638982,NULL,2,'{"metadata":{"graph_id":"approval","assistant_id":"e234584d-b7bf-527f-9d06-ba77f8f5172d"},"config":{"configurable":{"user-agent":"python-httpx/0.28.1"}},"head":{"ns":"assistant:e234584d-b7bf-527f-9d06-ba77f8f5172d","checkpoint_id":"1f1e1d25-be5f-645e-8000-c509d084d9fa","graph_id":"approval","assistant_id":"e234584d-b7bf-527f-9d06-ba77f8f5172d"},"interrupts":{"1c8064f3-5b87-c819-24dd-c5ddb5d8721d":[{"value":{"question":"Shall I answer?","to":"Shall I?"},"id":"ebfe123c207eac6ea786c4d77a591704"}]}}');
CREATE TABLE runs (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    status TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    due_at INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, thread_id, run_id));
INSERT INTO runs VALUES('','11111111-1111-4111-8111-111111111111','01a1e4f9-405a-7e6e-a7cd-1d13d558133d',2,'success',1794842902618912,1794842902621999,NULL,'{"assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0","multitask_strategy":"enqueue","attempt":1,"metadata":{"created_by":"system","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0"},"kwargs":{"input":{"messages":[{"role":"user","content":"Warp and weft"}]},"config":{"configurable":{"user-agent":"python-httpx/0.28.1","run_id":"01a1e4f9-405a-7e6e-a7cd-1d13d558133d","thread_id":"11111111-1111-4111-8111-111111111111","graph_id":"echo","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0","checkpoint_ns":"assistant:046b5dc7-2108-582c-9c6c-31d556d138f0"},"metadata":{"created_by":"system","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0"}},"context":{},"stream_mode":["values"],"temporary":false,"subgraphs":false,"resumable":true,"durability":"async"}}');
INSERT INTO runs VALUES('','11111111-1111-4111-8111-111111111111','01a1e4f9-4060-73d2-a5f5-036d15b1d8c1',2,'success',1794842902624241,1794842902626191,NULL,'{"assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0","multitask_strategy":"enqueue","attempt":1,"metadata":{"created_by":"system","graph_id":"echo","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0"},"kwargs":{"input":{"messages":[{"role":"user","content":"A second turn"}]},"config":{"configurable":{"user-agent":"python-httpx/0.28.1","run_id":"01a1e4f9-4060-73d2-a5f5-036d15b1d8c1","thread_id":"11111111-1111-4111-8111-111111111111","graph_id":"echo","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0","checkpoint_ns":"assistant:046b5dc7-2108-582c-9c6c-31d556d138f0"},"metadata":{"created_by":"system","graph_id":"echo","assistant_id":"046b5dc7-2108-582c-9c6c-31d556d138f0"}},"context":{},"stream_mode":["values"],"temporary":false,"subgraphs":false,"resumable":true,"durability":"async"}}');
INSERT INTO runs VALUES('','11111111-1111-4111-8111-111111111113','01a1e4f9-4069-77a5-96a9-cee805ed1471',2,'success',1794842902633480,1794842902638989,NULL,'{"assistant_id":"e234584d-b7bf-527f-9d06-ba77f8f5172d","multitask_strategy":"enqueue","attempt":1,"metadata":{"created_by":"system","assistant_id":"e234584d-b7bf-527f-9d06-ba77f8f5172d"},"kwargs":{"input":{"messages":[{"role":"user","content":"Shall I?"}]},"config":{"configurable":{"user-agent":"python-httpx/0.28.1","run_id":"01a1e4f9-4069-77a5-96a9-cee805ed1471","thread_id":"11111111-1111-4111-8111-111111111113","graph_id":"approval","assistant_id":"e234584d-b7bf-527f-9d06-ba77f8f5172d","checkpoint_ns":"assistant:e234584d-b7bf-527f-9d06-ba77f8f5172d"},"metadata":{"created_by":"system","assistant_id":"e234584d-b7bf-527f-9d06-ba77f8f5172d"}},"context":{},"stream_mode":["values"],"temporary":false,"subgraphs":false,"resumable":false,"durability":"async"}}');
CREATE TABLE event_pages (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (principal, thread_id, first_seq));
INSERT INTO event_pages VALUES('','11111111-1111-4111-8111-111111111111',1,4,'01a1e4f9-405a-7e6e-a7cd-1d13d558133d',1794842902622119,X'0228b52ffd60ac029d0b00c6d4432ca02569033f5855558dab7a7206ff9724a59bfcdfb54c296537ad7dfee192c8eeeedeb41864bddb36d8d6080935003a0037006e794da18462bb7b6b77f7f63adf493c0c01ff3c13255419f3e85c655ebd2b85b3ff3dece9546bc9b4f7e9ca620735100306c78104ab69b0cd2927f4304f20a976260c671e181a4881fbb899030a0e849015055d8b78ac62c108403f4123f3fa9cabce9a3e2a9baee83a2a5f0d690d6b4906a36cdd5ec676acc1a6dd163b08da2866a254c5bc095e00488403857cc868d6b61ee32063ffdad5b2b44fd87a51a5fa35c6a8a30119ddfb94e28b1474f1339f8b12fac7deab7491527ebb52b11773af1dfba5ddaafece78a3da2f2007413ee4a6c136a583414177c2c5022000fe4b402c61009b1451050a9cc517605d703d73a39570d168e926498bf6cfe29806688bcb144d69ce5963ae28285f60331797e5fc61bbe6af1291b9604f0c45c4bb92d8aadcd5282b6ce7c96500013249e2f90a61684717a33893c70e81c844');
INSERT INTO event_pages VALUES('','11111111-1111-4111-8111-111111111111',5,8,'01a1e4f9-4060-73d2-a5f5-036d15b1d8c1',1794842902626251,X'0228b52ffd608a058d0d00b6584d2c90276903fbdddddd5dd80892e9ff92c4744b4490cd962925d6feef87b3b7c8eeeeded72437ff18f69bfdaa913e0045003f000ed7d363fb10a775fe2c690b1de4bc65e6b5cccccbdf716160140822c3f4410efb7b4e187f53689964bde9955bd4d05a2857e46634eb7216070609867110a949e6948a6d1925c972bbb5c911dab69472e64951ea6c9006398c8c0a8e9f7d28962660601160018d55e90408c601a141200e9d0bcc6c48280e7864f0a7f81b63cf6abd05ede4f3a37d907b5fffda4e6c6deaf5d2959c4b658e9f098ff418a028752248bba45282ca3db87645f896a9e5d6d9eeaccb822b07e21b9a1e355100694eff0acda134ba577a108756a6197a90231b8c4c39f6cbf12e84de3e24dbf28ac9b2f41c59f2e267047030121a05046584fdbc31b81d9b5b6e070d04340acd898e5f062a206002094486a67cdc14f0580698c023c4975f5b0881e0320aae4102549c0e57942e27f487a94c95381fed56e69c601b587c0848131b667d6e8c1b5e413c84a253f04769996a54509017d85c5c96fbb05d7f958870c15e1a8ac07725b855b9ab518eed3c2d0308104592c957c0d08eee28ce183b04621301');
CREATE TABLE items (
    principal TEXT NOT NULL,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    ttl_us INTEGER,
    value TEXT NOT NULL,
    PRIMARY KEY (principal, namespace, key));
INSERT INTO items VALUES('','a','k',1794842902646408,1794842902646408,NULL,NULL,'{"a":1}');
CREATE TABLE crons (
    principal TEXT NOT NULL,
    cron_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    next_at INTEGER,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal, cron_id)) WITHOUT ROWID;
CREATE TABLE exchanges (
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (principal, thread_id, seq));
CREATE TABLE principals (
    principal TEXT NOT NULL,
    rev INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    state INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (principal)) WITHOUT ROWID;
CREATE TABLE participants (
    member TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    principal TEXT NOT NULL,
    role INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (member, thread_id, principal)) WITHOUT ROWID;
CREATE TABLE invitations (
    invitation_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    principal TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    role INTEGER NOT NULL,
    uses_left INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (invitation_id)) WITHOUT ROWID;
CREATE TABLE api_keys (
    key_id TEXT NOT NULL,
    rev INTEGER NOT NULL,
    hash TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (key_id)) WITHOUT ROWID;
CREATE TABLE vectors (
    principal TEXT NOT NULL,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    dims INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (principal, namespace, key));
CREATE INDEX checkpoints_by_run ON checkpoints (run_id, thread_id, checkpoint_ns, checkpoint_id) WHERE run_id IS NOT NULL;
CREATE VIEW heddle_assistants AS
SELECT principal,
       assistant_id,
       graph_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       version,
       name,
       body
FROM assistants;
CREATE VIEW heddle_assistant_versions AS
SELECT principal,
       assistant_id,
       version,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       body
FROM assistant_versions;
CREATE INDEX thread_info_by_created ON thread_info (principal, created_at, thread_id);
CREATE INDEX thread_info_by_expiry ON thread_info (expires_at, principal, thread_id) WHERE expires_at IS NOT NULL;
CREATE VIEW heddle_thread_info AS
SELECT principal,
       thread_id,
       rev,
       status,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', state_updated_at / 1e6, 'unixepoch') AS state_updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1e6, 'unixepoch') AS expires_at,
       event_seq,
       body
FROM thread_info;
CREATE INDEX runs_by_status ON runs (status, principal, thread_id, run_id);
CREATE INDEX runs_by_run ON runs (run_id, principal, thread_id);
CREATE VIEW heddle_runs AS
SELECT principal,
       thread_id,
       run_id,
       rev,
       status,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', due_at / 1e6, 'unixepoch') AS due_at,
       body
FROM runs;
CREATE INDEX event_pages_by_age ON event_pages (created_at, principal, thread_id, first_seq);
CREATE VIEW heddle_event_pages AS
SELECT principal,
       thread_id,
       first_seq,
       last_seq,
       run_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at
FROM event_pages;
CREATE INDEX items_by_expiry ON items (expires_at, principal, namespace, key) WHERE expires_at IS NOT NULL;
CREATE VIEW heddle_items AS
SELECT principal,
       namespace,
       key,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1e6, 'unixepoch') AS expires_at,
       ttl_us,
       value
FROM items;
CREATE INDEX crons_due ON crons (next_at, principal, cron_id) WHERE next_at IS NOT NULL;
CREATE VIEW heddle_crons AS
SELECT principal,
       cron_id,
       rev,
       strftime('%Y-%m-%dT%H:%M:%fZ', next_at / 1e6, 'unixepoch') AS next_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       body
FROM crons;
CREATE VIEW heddle_exchanges AS
SELECT principal,
       thread_id,
       seq,
       run_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at
FROM exchanges;
CREATE VIEW heddle_principals AS
SELECT principal,
       rev,
       key_id,
       issuer,
       subject,
       state,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       body
FROM principals;
CREATE INDEX participants_by_thread ON participants (principal, thread_id, member);
CREATE VIEW heddle_participants AS
SELECT member,
       thread_id,
       principal,
       role,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       body
FROM participants;
CREATE INDEX invitations_by_thread ON invitations (principal, thread_id, invitation_id);
CREATE INDEX invitations_by_expiry ON invitations (expires_at, invitation_id) WHERE expires_at IS NOT NULL;
CREATE VIEW heddle_invitations AS
SELECT invitation_id,
       rev,
       principal,
       thread_id,
       role,
       uses_left,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1e6, 'unixepoch') AS expires_at,
       body
FROM invitations;
CREATE VIEW heddle_api_keys AS
SELECT key_id,
       rev,
       hash,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', expires_at / 1e6, 'unixepoch') AS expires_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', revoked_at / 1e6, 'unixepoch') AS revoked_at,
       body
FROM api_keys;
CREATE VIEW heddle_vectors AS
SELECT principal,
       namespace,
       key,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1e6, 'unixepoch') AS updated_at,
       dims
FROM vectors;
CREATE VIEW heddle_threads AS
SELECT substr(t.thread_id, 1, instr(t.thread_id, ':') - 1) AS principal,
       substr(t.thread_id, instr(t.thread_id, ':') + 1) AS thread_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1e6, 'unixepoch') AS created_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', t.updated_at / 1e6, 'unixepoch') AS updated_at,
       (SELECT count(*) FROM checkpoints AS c WHERE c.thread_id = t.thread_id)
           AS checkpoints
FROM threads AS t;
CREATE VIEW heddle_checkpoints AS
SELECT substr(thread_id, 1, instr(thread_id, ':') - 1) AS principal,
       substr(thread_id, instr(thread_id, ':') + 1) AS thread_id,
       checkpoint_ns, checkpoint_id, parent_checkpoint_id, run_id, metadata
FROM checkpoints;
COMMIT;
PRAGMA application_id=1214538860;
PRAGMA user_version=5;
